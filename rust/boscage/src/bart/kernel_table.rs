//! The table of kernels, which settings, chains, model files and the Python package share.
//!
//! To add a kernel, add a variant of [`Kernel`], a row of [`TABLE`], a [`NewTree`] with its line in
//! [`new_tree`](crate::bart::kernels::new_tree), and a kind of step to count ([`BartStep`]).

use crate::bayes::mcmc::Acceptance;
use crate::random::keyed::Stream;

/// A way to change one tree of the sum, given the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Grow or prune, then shift cuts a little.
    Local,
    /// Grow or prune (Pratola et al. 2013).
    GrowPrune,
    /// Grow, prune, change or swap (Chipman et al. 1998).
    Cgm,
    /// Particle Gibbs (Algorithm 4.2).
    ParticleGibbs,
    /// Particle Gibbs on the subtrees of random nodes, without resampling, with proposals that depend on the
    /// targets.
    Regrow,
    /// Inserts, changes and deletes cuts below random nodes, and keeps the other cuts that still split rows.
    Edit,
}

/// The properties of a kernel.
struct KernelRow {
    kernel: Kernel,
    name: &'static str,
    /// Its default probability, as a function of that of all kernels that build a new tree
    /// ([`new_tree_share`]).
    default_share: fn(f64) -> f64,
    /// Whether it can change the tree only with two particles or more.
    needs_particles: bool,
    function: Function,
    /// The kinds of step that it counts.
    steps: &'static [BartStep],
}

/// How a kernel changes a tree.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Function {
    /// From statistics of leaves: grows or prunes, then shifts `n_shifts` cuts.
    OnLeaves { n_shifts: usize },
    /// From the statistics of every row: replaces the tree.
    OnRows(NewTree),
}

/// The kernels that replace a tree by a new one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NewTree {
    Cgm,
    ParticleGibbs,
    Regrow,
    Edit,
}

/// Number of cuts that a local step shifts. One to three were equally efficient for the time that they take.
const SHIFTS: usize = 2;

const TABLE: [KernelRow; Kernel::N] = [
    KernelRow {
        kernel: Kernel::Local,
        name: "local",
        default_share: |new_tree| 1.0 - new_tree,
        needs_particles: false,
        function: Function::OnLeaves { n_shifts: SHIFTS },
        steps: &[BartStep::Grow, BartStep::Prune, BartStep::Shift],
    },
    KernelRow {
        kernel: Kernel::GrowPrune,
        name: "growprune",
        default_share: |_| 0.0,
        needs_particles: false,
        function: Function::OnLeaves { n_shifts: 0 },
        steps: &[BartStep::Grow, BartStep::Prune],
    },
    KernelRow {
        kernel: Kernel::Cgm,
        name: "cgm",
        default_share: |_| 0.0,
        needs_particles: false,
        function: Function::OnRows(NewTree::Cgm),
        steps: &[BartStep::Grow, BartStep::Prune, BartStep::ChangeOrSwap],
    },
    KernelRow {
        kernel: Kernel::ParticleGibbs,
        name: "pg",
        default_share: |_| 0.0,
        needs_particles: true,
        function: Function::OnRows(NewTree::ParticleGibbs),
        steps: &[BartStep::ParticleGibbs],
    },
    KernelRow {
        kernel: Kernel::Regrow,
        name: "regrow",
        default_share: |new_tree| 0.5 * new_tree,
        needs_particles: true,
        function: Function::OnRows(NewTree::Regrow),
        steps: &[BartStep::Regrow],
    },
    KernelRow {
        kernel: Kernel::Edit,
        name: "edit",
        default_share: |new_tree| 0.5 * new_tree,
        needs_particles: false,
        function: Function::OnRows(NewTree::Edit),
        steps: &[BartStep::Edit],
    },
];

/// The default probability of the kernels that build a new tree. For a given computing time they mix best
/// with a single tree, in which local steps get stuck; with many trees local steps mix best, since they are
/// much cheaper.
fn new_tree_share(n_trees: usize) -> f64 {
    5.0 / (5.0 + (n_trees as f64).powi(3))
}

impl Kernel {
    const N: usize = 6;

    /// All kernels, in the order of [`Kernels`].
    pub const ALL: [Self; Self::N] =
        [Self::Local, Self::GrowPrune, Self::Cgm, Self::ParticleGibbs, Self::Regrow, Self::Edit];

    fn row(self) -> &'static KernelRow {
        &TABLE[self as usize]
    }

    /// The name of the kernel in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The kernel with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.kernel)
    }

    /// Whether it needs at least two particles, one of which is the old tree.
    #[must_use]
    pub fn needs_particles(self) -> bool {
        self.row().needs_particles
    }

    /// The kinds of step that it counts.
    #[must_use]
    pub fn steps(self) -> &'static [BartStep] {
        self.row().steps
    }

    pub(crate) fn function(self) -> Function {
        self.row().function
    }
}

/// How often each kernel changes a tree: probabilities that sum to one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kernels {
    shares: [f64; Kernel::N],
}

impl Kernels {
    /// Kernels with their probabilities; all others have probability zero.
    #[must_use]
    pub const fn new(shares: &[(Kernel, f64)]) -> Self {
        let mut all = [0.0; Kernel::N];
        let mut i = 0;
        while i < shares.len() {
            all[shares[i].0 as usize] = shares[i].1;
            i += 1;
        }
        Self { shares: all }
    }

    /// A single kernel.
    #[must_use]
    pub const fn only(kernel: Kernel) -> Self {
        Self::new(&[(kernel, 1.0)])
    }

    /// The defaults for a number of trees: local steps, regrow and edit. The fewer trees, the more probable
    /// are the latter two.
    #[must_use]
    pub fn for_trees(n_trees: usize) -> Self {
        let new_tree = new_tree_share(n_trees);
        Self { shares: Kernel::ALL.map(|kernel| (kernel.row().default_share)(new_tree)) }
    }

    /// The probability of a kernel.
    #[must_use]
    pub const fn share(&self, kernel: Kernel) -> f64 {
        self.shares[kernel as usize]
    }

    /// The probabilities of all kernels, in the order of [`Kernel::ALL`].
    #[must_use]
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// The shares in the form in which settings are hashed: those of the kernels of the first version, and
    /// the number and share of each later kernel that is used.
    pub(crate) fn hashed(&self) -> (Vec<f64>, Vec<u64>) {
        hashed(&self.shares)
    }

    pub(crate) fn draw(&self, stream: &mut Stream) -> Kernel {
        // Grow and prune alone need few random numbers, so none is spent on the choice of the kernel.
        let mut u = if self.share(Kernel::GrowPrune) < 1.0 { stream.unit() } else { 0.0 };
        // The order determines the draws: grow and prune come first, so that chains of earlier versions can
        // be continued.
        let others = Kernel::ALL.into_iter().filter(|&kernel| kernel != Kernel::GrowPrune);
        let mut drawn = Kernel::Local;
        for kernel in std::iter::once(Kernel::GrowPrune).chain(others) {
            let share = self.share(kernel);
            if share > 0.0 {
                drawn = kernel;
                u -= share;
                if u < 0.0 {
                    break;
                }
            }
        }
        drawn
    }
}

fn hashed(shares: &[f64]) -> (Vec<f64>, Vec<u64>) {
    /// Number of kernels in the first version of files.
    const FIRST: usize = 6;
    let later = shares.iter().enumerate().skip(FIRST).filter(|(_, share)| **share > 0.0);
    (shares[..FIRST].to_vec(), later.flat_map(|(number, share)| [number as u64, share.to_bits()]).collect())
}

/// The kinds of step that chains count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BartStep {
    /// Split a leaf.
    Grow,
    /// Turn a node above two leaves into a leaf.
    Prune,
    /// Change the rule of a node, or swap it with that of a child.
    ChangeOrSwap,
    /// Draw a tree from particles.
    ParticleGibbs,
    /// Shift the threshold of a node.
    Shift,
    /// Draw subtrees from particles.
    Regrow,
    /// Insert, change or delete cuts.
    Edit,
}

impl BartStep {
    const N: usize = 7;

    /// All steps, with their names in traces and in files.
    const TABLE: [(Self, &'static str); Self::N] = [
        (Self::Grow, "grow"),
        (Self::Prune, "prune"),
        (Self::ChangeOrSwap, "change_or_swap"),
        (Self::ParticleGibbs, "particle_gibbs"),
        (Self::Shift, "shift"),
        (Self::Regrow, "regrow"),
        (Self::Edit, "edit"),
    ];

    /// The kinds of step in the first version of files, in its order.
    pub(crate) const OF_FIRST_FILES: [Self; 7] = [
        Self::Grow,
        Self::Prune,
        Self::ChangeOrSwap,
        Self::ParticleGibbs,
        Self::Shift,
        Self::Regrow,
        Self::Edit,
    ];

    /// All steps, in the order of traces.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::TABLE.into_iter().map(|(step, _)| step)
    }

    /// The name of the step in traces.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::TABLE[self as usize].1
    }

    /// The kind of step with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::TABLE.iter().find(|(_, other)| *other == name).map(|(step, _)| *step)
    }
}

/// How often each kind of step was tried, and how often it changed a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepCounts {
    counts: [Acceptance; BartStep::N],
}

impl StepCounts {
    /// The counts of a kind of step.
    #[must_use]
    pub fn of(&self, step: BartStep) -> Acceptance {
        self.counts[step as usize]
    }

    /// All steps with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (BartStep, Acceptance)> + '_ {
        BartStep::all().zip(self.counts)
    }

    /// Counts one step.
    pub(crate) fn note(&mut self, step: BartStep, made: bool) {
        self.counts[step as usize].note(made);
    }

    pub(crate) fn set(&mut self, step: BartStep, counts: Acceptance) {
        self.counts[step as usize] = counts;
    }

    /// Adds the counts of another.
    pub(crate) fn add(&mut self, other: &Self) {
        for (own, other) in self.counts.iter_mut().zip(other.counts) {
            own.tried += other.tried;
            own.made += other.made;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of the tables are found by index, so each must be at the index of its kernel or step.
    #[test]
    fn rows_of_the_tables_are_at_their_index() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!((row.kernel as usize, row.kernel), (i, Kernel::ALL[i]));
            assert_eq!(Kernel::from_name(row.name), Some(row.kernel));
        }
        for (i, (step, name)) in BartStep::TABLE.into_iter().enumerate() {
            assert_eq!(step as usize, i);
            assert_eq!(BartStep::from_name(name), Some(step));
            assert!(TABLE.iter().any(|row| row.steps.contains(&step)), "{name} is of no kernel");
        }
        assert_eq!((Kernel::from_name("none"), BartStep::from_name("none")), (None, None));
    }

    #[test]
    fn defaults_are_probabilities() {
        for n_trees in [1, 2, 10, 200, 100_000] {
            let total: f64 = Kernels::for_trees(n_trees).shares().iter().sum();
            assert!((total - 1.0).abs() < 1e-12, "{n_trees}: {total}");
        }
        assert!(Kernels::for_trees(1).share(Kernel::Edit) > 0.4);
        assert!(Kernels::for_trees(200).share(Kernel::Local) > 0.999);
    }

    /// A new kernel changes the hash of settings only if it is used.
    #[test]
    fn a_new_kernel_changes_the_hash_only_if_it_is_used() {
        let old = [0.5, 0.1, 0.1, 0.1, 0.1, 0.1];
        let with = |later: &[f64]| hashed(&[&old, later].concat());
        assert_eq!(with(&[]), (old.to_vec(), vec![]));
        assert_eq!(with(&[0.0, 0.0]), with(&[]));
        assert_ne!(with(&[0.5, 0.0]), with(&[0.0, 0.5]));
        assert_ne!(with(&[0.5]), with(&[0.25]));
    }

    /// Kernels are drawn in proportion to their shares, and those with share zero are never drawn.
    #[test]
    fn kernels_are_drawn_by_their_shares() {
        let kernels = Kernels::new(&[(Kernel::GrowPrune, 0.5), (Kernel::Local, 0.2), (Kernel::Edit, 0.3)]);
        let mut stream = Stream::new(1, 0);
        let (n, mut counts) = (100_000, [0u32; Kernel::N]);
        (0..n).for_each(|_| counts[kernels.draw(&mut stream) as usize] += 1);
        for (&share, count) in kernels.shares().iter().zip(counts) {
            let error = (share * (1.0 - share) / f64::from(n)).sqrt();
            assert!((f64::from(count) / f64::from(n) - share).abs() <= 5.0 * error, "{counts:?}");
        }
    }
}
