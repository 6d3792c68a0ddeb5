//! The table of kernels: all that settings, chains, model files and the Python package need to know of each.
//!
//! A new kernel is a variant of [`Kernel`], a row of [`TABLE`], a [`NewTree`] with its line in
//! [`new_tree`](crate::bart::kernels::new_tree), and a step to count ([`BartStep`]).

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
    /// Particle Gibbs below random nodes, without resampling, with proposals that see the targets.
    Regrow,
    /// Cuts inserted, changed and deleted below random nodes; the other cuts stay as long as they still split rows.
    Edit,
}

/// What is known of a kernel.
struct KernelRow {
    kernel: Kernel,
    name: &'static str,
    /// Its default probability, given that of the kernels that build a new tree ([`new_tree_share`]).
    default_share: fn(f64) -> f64,
    /// Whether it draws another tree than the old one only if there are two particles or more.
    needs_particles: bool,
    function: Function,
    /// What it counts.
    steps: &'static [BartStep],
}

/// How a kernel changes a tree.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Function {
    /// By statistics of leaves: it grows or prunes, then shifts so many cuts.
    OnLeaves { n_shifts: usize },
    /// By what every row says: it replaces the tree.
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

/// Shifts of a tree's cuts in a local step: one to three are worth the same in the same time.
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

/// The default probability of the kernels that build a new tree. With one tree, in which local steps get stuck, these
/// reached and explored the posterior best in a given time; with many trees local steps did, which cost much less.
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

    /// The kernel of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.kernel)
    }

    /// Whether it needs two particles or more, one of which is the old tree.
    #[must_use]
    pub fn needs_particles(self) -> bool {
        self.row().needs_particles
    }

    /// The steps that it counts.
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
    /// Kernels with their probabilities; that of all others is zero.
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

    /// One kernel alone.
    #[must_use]
    pub const fn only(kernel: Kernel) -> Self {
        Self::new(&[(kernel, 1.0)])
    }

    /// The defaults for a number of trees: local steps, regrow and edit; the fewer trees, the more of the latter two.
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

    /// What identifies the shares among settings: those of the first kernels there were, and of later ones that are used
    /// number and share.
    pub(crate) fn hashed(&self) -> (Vec<f64>, Vec<u64>) {
        hashed(&self.shares)
    }

    pub(crate) fn draw(&self, stream: &mut Stream) -> Kernel {
        // Grow and prune alone are worth no random number, of which they need few.
        let mut u = if self.share(Kernel::GrowPrune) < 1.0 { stream.unit() } else { 0.0 };
        // The order is part of what a chain draws, so that chains of earlier versions go on: grow and prune first.
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
    /// Kernels when files were first written.
    const FIRST: usize = 6;
    let later = shares.iter().enumerate().skip(FIRST).filter(|(_, share)| **share > 0.0);
    (shares[..FIRST].to_vec(), later.flat_map(|(number, share)| [number as u64, share.to_bits()]).collect())
}

/// What chains count: kinds of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BartStep {
    /// A leaf was to be split.
    Grow,
    /// A node above two leaves was to become a leaf.
    Prune,
    /// The rule of a node was to be changed, or swapped with that of its child.
    ChangeOrSwap,
    /// A tree was drawn among particles.
    ParticleGibbs,
    /// The threshold of a node was to be shifted.
    Shift,
    /// Subtrees were drawn among particles.
    Regrow,
    /// Cuts were to be inserted, changed or deleted.
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

    /// The steps that the first version of files counts, in its order.
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

    /// The step of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::TABLE.iter().find(|(_, other)| *other == name).map(|(step, _)| *step)
    }
}

/// How often each kind of step was tried, and changed a tree.
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

    /// Counts a step.
    pub(crate) fn note(&mut self, step: BartStep, made: bool) {
        self.counts[step as usize].note(made);
    }

    pub(crate) fn set(&mut self, step: BartStep, counts: Acceptance) {
        self.counts[step as usize] = counts;
    }

    /// Adds other counts.
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

    /// Rows are found by place: they must stand where their kernel or step says.
    #[test]
    fn rows_stand_at_their_places() {
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

    /// A kernel that is added changes what identifies settings only where it is used.
    #[test]
    fn kernels_that_are_added_tell_settings_apart_where_they_are_used() {
        let old = [0.5, 0.1, 0.1, 0.1, 0.1, 0.1];
        let with = |later: &[f64]| hashed(&[&old, later].concat());
        assert_eq!(with(&[]), (old.to_vec(), vec![]));
        assert_eq!(with(&[0.0, 0.0]), with(&[]));
        assert_ne!(with(&[0.5, 0.0]), with(&[0.0, 0.5]));
        assert_ne!(with(&[0.5]), with(&[0.25]));
    }

    /// Kernels as often as they should be, and none that should not be drawn at all.
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
