//! A walk through the cells of one tree's Mondrian process.
//!
//! The root cell is the box `K_L` of the domain. A cell keeps, for every level from its base to `L`, a key
//! and one pending cut: at the base level drawn in the cell's part of `K_base`, at a level `l` above it in
//! the cell's part of `K_l` outside `K_{l-1}`. The earliest pending cut is the cell's next. Because the
//! shells' processes are independent and exponential times have no memory, this is the Mondrian process on
//! `K_L` (Poisson thinning); because levels below a cut keep their key and pending cut on the side that
//! holds their box, rows inside `K_l` see the same cuts whatever `L >= l` is.
//!
//! A pending cut's time is drawn when it is first read, and its place when the cut turns out to be the earliest. Both
//! are functions of the level's key, so the delay changes nothing, and following a path of known cuts draws none.

use crate::mondrian::process::cut::Cut;
use crate::mondrian::process::domain::Domain;
use crate::mondrian::process::sum_tree::SumTree;
use crate::random::keyed::Key;

/// One level of a cell.
#[derive(Debug, Clone, Copy)]
struct Level {
    key: Key,
    /// The time since which the level has its key.
    since: f64,
    /// Drawn when it is first read; its time is infinite if there is none.
    pending: Option<PendingCut>,
}

/// A cut whose time is drawn, and its place once it is read.
#[derive(Debug, Clone, Copy)]
struct PendingCut {
    time: f64,
    place: Option<(u32, f64)>,
}

/// What [`Cell::descend`] changed; [`Cell::ascend_to`] restores it.
#[derive(Debug)]
struct Step {
    coordinate: u32,
    /// The level whose process has the cut.
    level: u32,
    base: usize,
    low: f64,
    high: f64,
}

/// The cell that a walk from the root cell has reached.
#[derive(Debug)]
pub(crate) struct Cell<'a> {
    domain: &'a Domain,
    low: Vec<f64>,
    high: Vec<f64>,
    /// The lowest level of which the cell has a part.
    base: usize,
    levels: Vec<Level>,
    rates: Vec<SumTree>,
    /// Whether `rates` are out of date.
    stale: bool,
    steps: Vec<Step>,
    /// The levels before every step, `levels.len()` of them a step.
    saved: Vec<Level>,
    /// The former values of the sums of rates that the steps changed.
    saved_sums: Vec<f64>,
    root: Root,
}

/// Bounds and rates of the root cell.
#[derive(Debug)]
struct Root {
    low: Vec<f64>,
    high: Vec<f64>,
    rates: Vec<SumTree>,
}

impl<'a> Cell<'a> {
    /// The root cell of the tree with key `key` in the box `K_level`.
    pub(crate) fn root(domain: &'a Domain, level: u32, key: Key) -> Self {
        let n_levels = level as usize + 1;
        let (low, high): (Vec<f64>, Vec<f64>) =
            (0..domain.n_coordinates()).map(|d| domain.bounds(level as usize, d)).unzip();
        let levels =
            (0..n_levels).map(|l| Level { key: key.at_level(l), since: 0.0, pending: None }).collect();
        let rates: Vec<SumTree> = (0..n_levels).map(|_| SumTree::new(domain.n_coordinates())).collect();
        let root = Root { low: low.clone(), high: high.clone(), rates: rates.clone() };
        let (steps, saved, saved_sums) = (Vec::new(), Vec::new(), Vec::new());
        let stale = true;
        let mut cell =
            Self { domain, low, high, base: 0, levels, rates, stale, steps, saved, saved_sums, root };
        cell.freshen();
        cell.root.rates.clone_from(&cell.rates);
        cell
    }

    /// Moves to the cell of the tree with key `key` below some cuts, given with their sides from the last
    /// cut up to the root's. Depths count from there.
    pub(crate) fn place(&mut self, key: Key, path: &[(Cut, bool)]) {
        self.steps.clear();
        self.saved.clear();
        self.saved_sums.clear();
        self.low.copy_from_slice(&self.root.low);
        self.high.copy_from_slice(&self.root.high);
        self.base = 0;
        for (l, level) in self.levels.iter_mut().enumerate() {
            *level = Level { key: key.at_level(l), since: 0.0, pending: None };
        }
        for &(cut, right) in path.iter().rev() {
            self.go(self.level_of(cut), cut, right);
        }
        // At another base the shells have other holes; and a long path has cut most features anyway.
        self.stale = self.base > 0 || path.len() >= self.low.len();
        for level in 0..if self.stale { 0 } else { self.levels.len() } {
            let mut rates = std::mem::replace(&mut self.rates[level], SumTree::empty());
            rates.copy_numbers(&self.root.rates[level]);
            for (cut, _) in path {
                let d = cut.coordinate as usize;
                rates.numbers()[d] = self.rate(level, d);
            }
            rates.sum();
            self.rates[level] = rates;
        }
    }

    /// Number of cuts between the root cell and this one.
    pub(crate) fn depth(&self) -> usize {
        self.steps.len()
    }

    /// The cell's next cut, if it comes before `lifetime` (Algorithm 5.2, lines 3 to 7, for a cell in place of a
    /// node's box).
    pub(crate) fn next_cut(&mut self, lifetime: f64) -> Option<Cut> {
        let (_, cut) = self.earliest();
        (cut.time < lifetime).then_some(cut)
    }

    /// Goes to one side of the cell's next cut.
    pub(crate) fn descend(&mut self, right: bool) {
        let (level, cut) = self.earliest();
        debug_assert!(cut.time < f64::INFINITY, "a cell without a next cut has no sides");
        self.take(level, cut, right);
    }

    /// Goes back up to the cell below `depth` cuts.
    pub(crate) fn ascend_to(&mut self, depth: usize) {
        while self.steps.len() > depth {
            let step = self.steps.pop().expect("longer than depth");
            for level in self.levels.iter_mut().rev() {
                *level = self.saved.pop().expect("all levels were saved");
            }
            let d = step.coordinate as usize;
            self.low[d] = step.low;
            self.high[d] = step.high;
            if self.base == step.base {
                for rates in self.rates[step.level as usize..].iter_mut().rev() {
                    rates.restore(d, &mut self.saved_sums);
                }
            } else {
                // Rates of levels below the base were not updated.
                self.base = step.base;
                self.stale = true;
            }
        }
    }

    /// The level that cuts next, and its cut.
    fn earliest(&mut self) -> (usize, Cut) {
        if self.stale {
            self.freshen();
        }
        let (mut first, mut pending) = (self.base, self.pending(self.base));
        for level in self.base + 1..self.levels.len() {
            let other = self.pending(level);
            if other.time < pending.time {
                (first, pending) = (level, other);
            }
        }
        let time = pending.time;
        if time == f64::INFINITY {
            return (first, Cut { time, coordinate: 0, threshold: 0.0 });
        }
        let (coordinate, threshold) = pending.place.unwrap_or_else(|| {
            let place = self.draw_place(first);
            self.levels[first].pending = Some(PendingCut { time, place: Some(place) });
            place
        });
        (first, Cut { time, coordinate, threshold })
    }

    /// The pending cut of a level (Algorithm 5.2, line 3, on a cell instead of a data box).
    fn pending(&mut self, level: usize) -> PendingCut {
        let Level { key, since, pending } = self.levels[level];
        pending.unwrap_or_else(|| {
            let rate = self.rates[level].total();
            // A cell without extent is never cut.
            let time = if rate > 0.0 { since + key.exponential() / rate } else { f64::INFINITY };
            let pending = PendingCut { time, place: None };
            self.levels[level].pending = Some(pending);
            pending
        })
    }

    /// Draws the coordinate and the threshold of a level's cut (Algorithm 5.2, lines 6-7).
    fn draw_place(&self, level: usize) -> (u32, f64) {
        let key = self.levels[level].key;
        let d = self.rates[level].find(key.feature());
        let (low, high) = self.part(level, d);
        let u = key.location();
        let threshold = match self.hole(level, d) {
            None => within(low, high, u * (high - low)),
            Some((hole_low, hole_high)) => {
                let (below, above) = beside((low, high), (hole_low, hole_high));
                let along = u * (below + above);
                if along < below || above == 0.0 {
                    within(low, hole_low, along)
                } else {
                    within(hole_high, high, along - below)
                }
            }
        };
        (d as u32, threshold)
    }

    /// The level whose process has a cut here: levels' processes cut disjoint places.
    fn level_of(&self, cut: Cut) -> usize {
        let last = self.levels.len() - 1;
        let cuts = |&level: &usize| {
            let (low, high) = self.domain.bounds(level, cut.coordinate as usize);
            low <= cut.threshold && cut.threshold < high
        };
        (self.base..last).find(cuts).unwrap_or(last)
    }

    /// Goes to one side of a level's pending cut, so that `ascend_to` can undo it.
    fn take(&mut self, level: usize, cut: Cut, right: bool) {
        let d = cut.coordinate as usize;
        let (coordinate, low, high, base) = (cut.coordinate, self.low[d], self.high[d], self.base);
        self.steps.push(Step { coordinate, level: level as u32, base, low, high });
        self.levels.iter().for_each(|&level| self.saved.push(level));
        if self.go(level, cut, right) {
            // A new base has all of its part, and no hole.
            self.stale = true;
            return;
        }
        for l in level..self.levels.len() {
            let rate = self.rate(l, d);
            self.rates[l].change(d, rate, &mut self.saved_sums);
        }
    }

    /// Goes to one side of a level's cut; returns whether the base changed. Rates are not updated.
    fn go(&mut self, level: usize, cut: Cut, right: bool) -> bool {
        let d = cut.coordinate as usize;
        // A cut of a shell leaves the boxes within the shell whole on one side and absent on the other: right
        // of a cut above the hole, left of a cut below it.
        let outer = self.hole(level, d).is_some_and(|(hole_low, _)| right == (cut.threshold >= hole_low));
        if right {
            self.low[d] = cut.threshold;
        } else {
            self.high[d] = cut.threshold;
        }
        let key = self.levels[level].key.child(right);
        for (l, above) in self.levels.iter_mut().enumerate().skip(level) {
            *above = Level { key: key.at_level(l), since: cut.time, pending: None };
        }
        if outer {
            self.base = level;
        }
        outer
    }

    /// The cell's part of `K_level` along one coordinate.
    fn part(&self, level: usize, d: usize) -> (f64, f64) {
        if level + 1 == self.levels.len() {
            // All of it: the root cell is the box of the last level.
            return (self.low[d], self.high[d]);
        }
        let (low, high) = self.domain.bounds(level, d);
        (self.low[d].max(low), self.high[d].min(high))
    }

    /// The box within a shell, along one coordinate; none at the base level, which has all of its part.
    fn hole(&self, level: usize, d: usize) -> Option<(f64, f64)> {
        (level > self.base).then(|| self.domain.bounds(level - 1, d))
    }

    /// The rate along one coordinate at one level, in units of one over time.
    fn rate(&self, level: usize, d: usize) -> f64 {
        let (low, high) = self.part(level, d);
        let length = match self.hole(level, d) {
            None => high - low,
            Some(hole) => {
                let (below, above) = beside((low, high), hole);
                below + above
            }
        };
        // An interval of one number is not cut: it cannot become smaller.
        if !holds_two(low, high) {
            return 0.0;
        }
        (self.domain.rates()[d] * length).max(0.0)
    }

    /// Updates all rates.
    fn freshen(&mut self) {
        self.stale = false;
        for level in self.base..self.levels.len() {
            let mut rates = std::mem::replace(&mut self.rates[level], SumTree::empty());
            for (d, number) in rates.numbers()[..self.low.len()].iter_mut().enumerate() {
                *number = self.rate(level, d);
            }
            rates.sum();
            self.rates[level] = rates;
        }
    }
}

/// The lengths of a cell's parts below and above a hole. A cell does not hold its lower bound: with no
/// number between that and the hole, a cut there would leave the cell unchanged, for ever.
fn beside((low, high): (f64, f64), (hole_low, hole_high): (f64, f64)) -> (f64, f64) {
    let below = if holds_two(low, hole_low) { hole_low - low } else { 0.0 };
    (below, (high - hole_high).max(0.0))
}

/// Whether `(low, high]` holds at least two numbers.
fn holds_two(low: f64, high: f64) -> bool {
    // The first condition is fast, and decides all but the narrowest intervals.
    high - low > f64::EPSILON * high.abs() + f64::MIN_POSITIVE || high.next_down() > low
}

/// `low + along`, kept in `[low, high)` so that the cut leaves something of the interval on both sides.
fn within(low: f64, high: f64, along: f64) -> f64 {
    let at = low + along;
    if at < high { at.max(low) } else { high.next_down().max(low) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain() -> Domain {
        Domain::new(vec![-1.0, 0.0, 2.0], vec![1.0, 0.5, 2.0], Some(vec![1.0, 0.7, 2.0])).unwrap()
    }

    /// Cuts that part two points, or lie around them, on the way of `x` from the root box of a level.
    fn path(domain: &Domain, level: u32, seed: u64, x: &[f64], n: usize) -> Vec<Cut> {
        let mut cell = Cell::root(domain, level, Key::of_tree(seed, 0));
        let mut cuts = Vec::new();
        while cuts.len() < n {
            let Some(cut) = cell.next_cut(f64::INFINITY) else { break };
            cuts.push(cut);
            cell.descend(cut.goes_right(x[cut.coordinate as usize]));
        }
        cuts
    }

    /// A point inside `K_l` sees the cuts of `K_l` alike from every box around it: the cuts drawn on a
    /// higher level that lie within `K_l` on its way are those drawn on level `l`.
    #[test]
    fn levels_agree_inside() {
        let domain = domain();
        let points = [[0.3, 0.2, 2.0], [-0.9, 0.45, 2.0], [1.4, 0.2, 2.3], [-1.7, 0.6, 1.6]];
        for seed in 0..200 {
            for x in points {
                let own = domain.level_of(x.into_iter()).unwrap();
                let near = path(&domain, own, seed, &x, 12);
                let last = near.last().map_or(0.0, |cut| cut.time);
                for level in own + 1..=4 {
                    let mut far = path(&domain, level, seed, &x, 400);
                    // A cut of an outer shell lies outside the box along its coordinate.
                    far.retain(|cut| {
                        let (low, high) = domain.bounds(own as usize, cut.coordinate as usize);
                        cut.threshold >= low && cut.threshold < high && cut.time <= last
                    });
                    assert_eq!(near, far, "seed {seed}, level {level}");
                }
            }
        }
    }

    /// A walk along whichever side ends, where numbers lie next to each other too: beside the hole as within it.
    #[test]
    fn walks_along_neighbouring_numbers_end() {
        let (low, next) = (0.3, 0.1 + 0.2);
        for high in [next, 0.3f64.next_up().next_up(), 1.0] {
            let domain = Domain::new(vec![low], vec![high], None).unwrap();
            for (seed, level, x) in (0..200)
                .flat_map(|seed| (0..4).flat_map(move |l| [low, next, 0.5, -1.0].map(|x| (seed, l, x))))
            {
                let mut cell = Cell::root(&domain, level, Key::of_tree(seed, 0));
                let mut n = 0;
                while let Some(cut) = cell.next_cut(f64::INFINITY) {
                    cell.descend(cut.goes_right(x));
                    n += 1;
                    assert!(n < 2000, "level {level}, seed {seed}, to {x}");
                }
            }
        }
    }

    /// Going down and up again leaves a cell as it was, whatever lies between.
    #[test]
    fn ascending_undoes_descending() {
        let domain = domain();
        for seed in 0..100 {
            for level in 0..3 {
                let mut cell = Cell::root(&domain, level, Key::of_tree(seed, 1));
                let mut expected = Vec::new();
                for i in 0..10 {
                    let Some(cut) = cell.next_cut(f64::INFINITY) else { break };
                    expected.push(cut);
                    cell.descend((seed >> i) & 1 == 1);
                }
                for (depth, cut) in expected.into_iter().enumerate().rev() {
                    cell.ascend_to(depth);
                    assert_eq!(cell.next_cut(f64::INFINITY), Some(cut));
                }
            }
        }
    }

    /// A cell that is placed below known cuts is the one that is reached by drawing them, on every level, and
    /// whatever cell it was before.
    #[test]
    fn placing_is_descending() {
        let domain = domain();
        for level in 0..4 {
            let mut placed = Cell::root(&domain, level, Key::of_tree(0, 0));
            for seed in 0..100u64 {
                let key = Key::of_tree(seed, 2);
                let mut cell = Cell::root(&domain, level, key);
                let mut path = Vec::new();
                for i in 0..seed % 20 {
                    let Some(cut) = cell.next_cut(f64::INFINITY) else { break };
                    let right = ((seed * 7919) >> i) & 1 == 1;
                    path.insert(0, (cut, right));
                    cell.descend(right);
                }
                placed.place(key, &path);
                // The next cuts on either side agree, too.
                for right in [false, true, true, false] {
                    let cut = cell.next_cut(f64::INFINITY);
                    assert_eq!(placed.next_cut(f64::INFINITY), cut, "level {level}, seed {seed}");
                    if cut.is_none() {
                        break;
                    }
                    cell.descend(right);
                    placed.descend(right);
                }
            }
        }
    }

    /// The first cut that parts two points comes at rate `sum_d w_d |x_d - y_d|`, in feature `d` with
    /// probability in proportion, uniformly between them (projectivity), inside and outside `K_0`.
    #[test]
    fn separation_times_of_two_points_follow_the_law() {
        let domain = Domain::new(vec![0.0, 0.0], vec![1.0, 2.0], None).unwrap();
        for (level, x, y) in [(0, [0.1, 0.4], [0.7, 1.0]), (3, [-2.5, 0.4], [1.5, 6.0])] {
            let lengths: Vec<f64> = (0..2).map(|d| domain.rates()[d] * f64::abs(x[d] - y[d])).collect();
            let rate: f64 = lengths.iter().sum();
            let n = 20_000;
            let (mut time, mut first, mut along) = (0.0, 0.0, 0.0);
            for seed in 0..n {
                let mut cell = Cell::root(&domain, level, Key::of_tree(seed, 0));
                let cut = loop {
                    let cut = cell.next_cut(f64::INFINITY).unwrap();
                    let d = cut.coordinate as usize;
                    let right = cut.goes_right(x[d]);
                    if right != cut.goes_right(y[d]) {
                        break cut;
                    }
                    cell.descend(right);
                };
                let d = cut.coordinate as usize;
                time += cut.time;
                first += f64::from(u8::from(d == 0));
                along += (cut.threshold - x[d].min(y[d])) / (x[d] - y[d]).abs();
            }
            let n = n as f64;
            let p = lengths[0] / rate;
            // Five standard errors each.
            assert!((time / n * rate - 1.0).abs() < 5.0 / n.sqrt(), "mean time, level {level}");
            assert!((first / n - p).abs() < 5.0 * (p * (1.0 - p) / n).sqrt(), "feature, level {level}");
            assert!((along / n - 0.5).abs() < 5.0 / (12.0 * n).sqrt(), "location, level {level}");
        }
    }
}
