//! The top of a tree: its splits and skipped cuts down to the cells that are shared out.

use crate::data::{Scalar, goes_right};
use crate::error::{Error, Result};
use crate::mondrian::cells::counts::CellCount;
use crate::mondrian::process::cell::Cell;
use crate::mondrian::process::cut::Cut;
use crate::random::keyed::Key;

/// What becomes of a cell of a top. A list of steps in preorder, left before right, is a top without its cuts, which follow
/// from the tree's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TopStep {
    /// It is not cut by the top.
    Cell,
    /// It is cut, and there are rows on both sides.
    Split,
    /// It is cut, and all rows are on the left.
    Left,
    /// All rows are on the right.
    Right,
}

impl TopStep {
    const ALL: [Self; 4] = [Self::Cell, Self::Split, Self::Left, Self::Right];

    pub(super) fn of_byte(byte: u8) -> Result<Self> {
        Self::ALL.get(usize::from(byte)).copied().ok_or_else(|| wrong(format!("the step {byte}")))
    }

    /// The sides that hold rows.
    fn sides(self) -> &'static [bool] {
        match self {
            Self::Cell => &[],
            Self::Split => &[false, true],
            Self::Left => &[false],
            Self::Right => &[true],
        }
    }
}

pub(super) fn wrong(found: String) -> Error {
    Error::InvalidSetting { name: "tops", expected: "the steps of a tree each, in preorder", found }
}

/// A cell of a top, or a cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct TopNode {
    pub(super) step: TopStep,
    /// Of all but cells.
    cut: Option<Cut>,
    /// The number of the split or skipped cut above, and the side of it; none at the root.
    above: Option<(u32, bool)>,
    /// Of a split, the number of its right child. The left one, and the only one below a skipped cut, comes next.
    right: u32,
    /// The number of the cell among those of the tree.
    pub(super) cell: u32,
}

impl TopNode {
    pub(super) fn cut(&self) -> Cut {
        self.cut.expect("not a cell")
    }
}

/// What is below a cut.
#[derive(Debug, Clone, Copy)]
pub(super) enum Below<T> {
    /// Rows on both sides.
    Both([T; 2]),
    /// Rows on one side, and whether that is the right one: the cut is skipped.
    One(T, bool),
}

/// The top of a tree, in preorder.
#[derive(Debug, Clone)]
pub(crate) struct Top {
    pub(super) nodes: Vec<TopNode>,
    n_cells: usize,
    /// Where rows begin.
    entry: Route,
    splits: Vec<SplitRoute>,
}

/// Where a row goes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Route {
    Cell(u32),
    Split(u32),
}

#[derive(Debug, Clone, Copy)]
struct SplitRoute {
    coordinate: u32,
    threshold: f64,
    sides: [Route; 2],
}

impl Top {
    /// The top with some steps of the tree with key `key`, whose cuts are drawn in `cell`.
    ///
    /// # Errors
    /// Steps that are no tree, or that cut where there is no cut before `lifetime`.
    pub(super) fn new(steps: &[TopStep], cell: &mut Cell<'_>, key: Key, lifetime: f64) -> Result<Self> {
        cell.place(key, &[]);
        let nodes = Vec::with_capacity(steps.len());
        let mut top = Self { nodes, n_cells: 0, entry: Route::Cell(0), splits: Vec::new() };
        // Sides to go to: below which node, in the cell below how many cuts.
        let mut waiting = vec![(None, 0)];
        for &step in steps {
            let Some((above, depth)) = waiting.pop() else {
                return Err(wrong("more steps than the tree has".into()));
            };
            let number = top.nodes.len() as u32;
            cell.ascend_to(depth);
            if let Some((parent, right)) = above {
                cell.descend(right);
                let parent: &mut TopNode = &mut top.nodes[parent as usize];
                if right && parent.step == TopStep::Split {
                    parent.right = number;
                }
            }
            let cut = if step == TopStep::Cell { None } else { cell.next_cut(lifetime) };
            if step != TopStep::Cell && cut.is_none() {
                return Err(wrong("a cut that does not come before the lifetime".into()));
            }
            let sides = step.sides().iter().rev();
            waiting.extend(sides.map(|&right| (Some((number, right)), cell.depth())));
            top.nodes.push(TopNode { step, cut, above, right: 0, cell: top.n_cells as u32 });
            top.n_cells += usize::from(step == TopStep::Cell);
        }
        if waiting.is_empty() {
            Ok(top.with_routes())
        } else {
            Err(wrong("fewer steps than the tree has".into()))
        }
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = TopStep> + '_ {
        self.nodes.iter().map(|node| node.step)
    }

    /// Number of cells.
    pub(crate) fn n_cells(&self) -> usize {
        self.n_cells
    }

    /// The cell of a row: where skipped cuts are above it, that of the rows which they leave on one side.
    pub(super) fn cell_of<S: Scalar>(&self, x: &[S]) -> u32 {
        let mut at = self.entry;
        while let Route::Split(split) = at {
            let SplitRoute { coordinate, threshold, sides } = &self.splits[split as usize];
            at = sides[usize::from(goes_right(x[*coordinate as usize].into(), *threshold))];
        }
        let Route::Cell(cell) = at else { unreachable!("a route ends in a cell") };
        cell
    }

    /// The cell of a row that is left out of the tree: its own, or where it is alone there, the one that it reaches once the
    /// other side of the split above has taken the split's place.
    pub(super) fn cell_without<S: Scalar>(&self, x: &[S], is_alone: impl Fn(u32) -> bool) -> u32 {
        let own = self.cell_of(x);
        if !is_alone(own) {
            return own;
        }
        let is_own = |node: &TopNode| node.step == TopStep::Cell && node.cell == own;
        let mut at = self.nodes.iter().position(is_own).expect("the cell is in the top");
        let beside = loop {
            let Some((above, right)) = self.nodes[at].above else { return own };
            let node = &self.nodes[above as usize];
            if node.step == TopStep::Split {
                break if right { above as usize + 1 } else { node.right as usize };
            }
            at = above as usize;
        };
        at = beside;
        loop {
            let node = &self.nodes[at];
            at = match node.step {
                TopStep::Cell => return node.cell,
                TopStep::Split
                    if goes_right(x[node.cut().coordinate as usize].into(), node.cut().threshold) =>
                {
                    node.right as usize
                }
                _ => at + 1,
            };
        }
    }

    /// The routes of rows: splits alone, so that rows are compared with as few cuts as can be.
    fn with_routes(self) -> Self {
        let cells: Vec<u32> = (0..self.n_cells as u32).collect();
        self.with_routes_to(&cells)
    }

    /// A top whose [`cell_of`](Self::cell_of) says 1 for rows in some cells, and 0 for others; it is for nothing else.
    pub(super) fn parting(&self, is_in: impl Fn(usize) -> bool) -> Self {
        let parts: Vec<u32> = (0..self.n_cells).map(|cell| u32::from(is_in(cell))).collect();
        self.clone().with_routes_to(&parts)
    }

    /// The routes to a number for each cell. A split both of whose sides lead to one number is not looked at.
    fn with_routes_to(mut self, numbers: &[u32]) -> Self {
        let routes: Vec<Route> = numbers.iter().map(|&number| Route::Cell(number)).collect();
        let mut splits = Vec::new();
        self.entry = self.fold(&routes, |Cut { coordinate, threshold, .. }, below| match below {
            Below::One(route, _) => route,
            Below::Both([left, right]) if left == right => left,
            Below::Both(sides) => {
                splits.push(SplitRoute { coordinate, threshold, sides });
                Route::Split(splits.len() as u32 - 1)
            }
        });
        self.splits = splits;
        self
    }

    /// The cuts above every cell and their sides, from the last cut up to the root's.
    pub(super) fn paths(&self) -> Vec<Vec<(Cut, bool)>> {
        let cells = self.nodes.iter().filter(|node| node.step == TopStep::Cell);
        cells
            .map(|cell| {
                let above =
                    |node: &TopNode| node.above.map(|(parent, side)| (&self.nodes[parent as usize], side));
                let path = std::iter::successors(above(cell), |(node, _)| above(node));
                path.map(|(node, side)| (node.cut(), side)).collect()
            })
            .collect()
    }

    /// The root's value, given those of the cells, and `join`, which gives that of a cut from what is below it.
    pub(super) fn fold<T: Copy>(&self, cells: &[T], mut join: impl FnMut(Cut, Below<T>) -> T) -> T {
        let mut values: Vec<Option<T>> = vec![None; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().rev() {
            // Children come later in preorder.
            let value = |at: usize| values[at].expect("the values of children are known");
            values[at] = Some(match node.step {
                TopStep::Cell => cells[node.cell as usize],
                TopStep::Split => join(node.cut(), Below::Both([value(at + 1), value(node.right as usize)])),
                TopStep::Left => join(node.cut(), Below::One(value(at + 1), false)),
                TopStep::Right => join(node.cut(), Below::One(value(at + 1), true)),
            });
        }
        values[0].expect("a top has a root")
    }

    /// The steps of a smaller top: that of the tree itself, which splits only where rows are on both sides, down to the nodes
    /// that `is_cell` names. With the counts of its cells.
    pub(super) fn condensed(
        &self,
        counts: &[CellCount],
        is_cell: impl Fn(&CellCount) -> bool,
    ) -> (Vec<TopStep>, Vec<CellCount>) {
        let mut sums = vec![CellCount::NONE; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if node.step == TopStep::Cell {
                sums[at] = counts[node.cell as usize];
            }
            if let Some((parent, _)) = node.above {
                sums[parent as usize] = sums[parent as usize].and(sums[at]);
            }
        }
        let (mut steps, mut cells, mut waiting) = (Vec::new(), Vec::new(), vec![0]);
        while let Some(at) = waiting.pop() {
            let node = &self.nodes[at];
            let mut step = node.step;
            let sides = (at + 1, node.right as usize);
            if step == TopStep::Cell || is_cell(&sums[at]) {
                step = TopStep::Cell;
                cells.push(sums[at]);
            } else if step == TopStep::Split && sums[sides.0].n_rows == 0 {
                step = TopStep::Right;
                waiting.push(sides.1);
            } else if step == TopStep::Split && sums[sides.1].n_rows == 0 {
                step = TopStep::Left;
                waiting.push(sides.0);
            } else if step == TopStep::Split {
                waiting.extend([sides.1, sides.0]);
            } else {
                waiting.push(sides.0);
            }
            steps.push(step);
        }
        (steps, cells)
    }

    /// The steps of a larger top: the cells that `is_cut` names are cut, and both sides of each cut again, as often as
    /// `depth` says.
    pub(super) fn refined(
        &self,
        is_cut: impl Fn(usize) -> bool,
        depth: usize,
        (cell, key, lifetime): (&mut Cell<'_>, Key, f64),
    ) -> Vec<TopStep> {
        let paths = self.paths();
        let mut steps = Vec::new();
        for node in &self.nodes {
            if node.step != TopStep::Cell || !is_cut(node.cell as usize) {
                steps.push(node.step);
                continue;
            }
            cell.place(key, &paths[node.cell as usize]);
            let mut waiting = vec![(0, None)];
            while let Some((above, side)) = waiting.pop() {
                cell.ascend_to(above);
                if let Some(right) = side {
                    cell.descend(right);
                }
                if cell.depth() < depth && cell.next_cut(lifetime).is_some() {
                    steps.push(TopStep::Split);
                    waiting.extend([(cell.depth(), Some(true)), (cell.depth(), Some(false))]);
                } else {
                    steps.push(TopStep::Cell);
                }
            }
        }
        steps
    }
}
