//! A particle: a growing tree, stored as its cuts and its nodes that are eligible for expansion.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::bayes::smc::shared_node::SharedNodeId;
use crate::bayes::tree::{PreorderSplit, PreorderTree};

/// A node that a particle has to decide about, and its slot in the particle's tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Open {
    pub(crate) node: SharedNodeId,
    pub(crate) slot: u32,
}

/// A partial tree and its weight. Copies of a particle share their cuts.
#[derive(Debug, Clone)]
pub(crate) struct Particle {
    /// Logarithm of the weight `w` of eq. 3.6.
    pub(crate) log_weight: f64,
    /// Nodes eligible for expansion, the oldest first.
    pub(crate) open: VecDeque<Open>,
    /// Number of nodes in the tree.
    n_slots: u32,
    /// The last cut made.
    last: Option<u32>,
}

/// A cut of a node, and the cut made before it.
#[derive(Debug)]
struct Event<S> {
    before: Option<u32>,
    slot: u32,
    feature: u32,
    threshold: f64,
    left: Arc<S>,
    right: Arc<S>,
}

/// The cuts of all particles. Each refers to the previous cut of the same particle or of its ancestor.
#[derive(Debug)]
pub(crate) struct History<S> {
    events: Vec<Event<S>>,
    /// Number of cuts above which unused ones are dropped.
    limit: usize,
    root: Arc<S>,
}

impl Particle {
    /// The history of a tree with only the root.
    pub(crate) fn new(root: SharedNodeId, log_weight: f64) -> Self {
        let open = VecDeque::from([Open { node: root, slot: 0 }]);
        Self { log_weight, open, n_slots: 1, last: None }
    }

    /// The number of the last cut; it identifies the tree.
    pub(crate) fn last(&self) -> Option<u32> {
        self.last
    }
}

impl<S> History<S> {
    pub(crate) fn new(root: Arc<S>) -> Self {
        Self { events: Vec::new(), limit: 0, root }
    }

    /// Records a cut, and returns the slots of the children.
    pub(crate) fn split(
        &mut self,
        particle: &mut Particle,
        slot: u32,
        (feature, threshold): (u32, f64),
        [left, right]: [Arc<S>; 2],
    ) -> [u32; 2] {
        self.events.push(Event { before: particle.last, slot, feature, threshold, left, right });
        particle.last = Some(self.events.len() as u32 - 1);
        let slots = [particle.n_slots, particle.n_slots + 1];
        particle.n_slots += 2;
        slots
    }

    /// Drops the cuts that none of the given particles has made, if many were added. These must be all
    /// particles.
    pub(crate) fn prune<'a>(&mut self, particles: impl Iterator<Item = &'a mut Particle>) {
        if self.events.len() <= self.limit {
            return;
        }
        let particles: Vec<&mut Particle> = particles.collect();
        let mut is_needed = vec![false; self.events.len()];
        for particle in &particles {
            let mut last = particle.last;
            while let Some(i) = last.filter(|&i| !is_needed[i as usize]) {
                is_needed[i as usize] = true;
                last = self.events[i as usize].before;
            }
        }
        let mut n_kept = 0;
        let number: Vec<u32> = is_needed
            .iter()
            .map(|&is_needed| {
                n_kept += u32::from(is_needed);
                n_kept.wrapping_sub(1)
            })
            .collect();
        let moved = |last: Option<u32>| last.map(|i| number[i as usize]);
        let mut i = 0;
        self.events.retain_mut(|event| {
            event.before = moved(event.before);
            i += 1;
            is_needed[i - 1]
        });
        for particle in particles {
            particle.last = moved(particle.last);
        }
        self.limit = 2 * self.events.len();
    }

    /// The tree of a particle; open nodes become leaves.
    pub(crate) fn tree(&self, particle: &Particle) -> PreorderTree<S> {
        let mut cuts: Vec<&Event<S>> = Vec::new();
        let mut last = particle.last;
        while let Some(i) = last {
            cuts.push(&self.events[i as usize]);
            last = self.events[i as usize].before;
        }
        cuts.reverse();
        // Cut number `k` makes the slots `2k + 1` and `2k + 2`.
        let mut cut_of = vec![None; particle.n_slots as usize];
        for (k, cut) in cuts.iter().enumerate() {
            cut_of[cut.slot as usize] = Some(k as u32);
        }
        PreorderTree::from_root(0, |slot: u32| {
            let stats = match slot.checked_sub(1) {
                None => &self.root,
                Some(made) if made % 2 == 0 => &cuts[made as usize / 2].left,
                Some(made) => &cuts[made as usize / 2].right,
            };
            let split = cut_of[slot as usize].map(|k| {
                let cut = cuts[k as usize];
                (PreorderSplit::new(cut.feature, cut.threshold), [2 * k + 1, 2 * k + 2])
            });
            (Arc::clone(stats), split)
        })
    }
}
