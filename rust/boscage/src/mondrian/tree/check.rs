//! The invariants of a tree's structure.

use crate::mondrian::tree::arena::{Arena, NodeId, NodeKind};

impl Arena {
    /// States every invariant of the structure: times increase, rows add up, every node is reached once,
    /// every leaf holds its rows.
    ///
    /// # Errors
    /// The first invariant that does not hold, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (mut reached, mut n_skips) = (0, 0);
        let mut held = vec![false; self.lists.n_places()];
        let mut stack: Vec<(NodeId, f64)> = self.root().map(|root| (root, 0.0)).into_iter().collect();
        while let Some((node, after)) = stack.pop() {
            reached += 1;
            let skips = self.skips(node);
            n_skips += skips.len();
            let times = skips.iter().map(|skip| skip.time).chain([self.time(node)]);
            if let Some((a, b)) = std::iter::once(after).chain(times.clone()).zip(times).find(|(a, b)| a > b)
            {
                return Err(format!("{node:?} is reached by a cut at {a}, then one at {b}"));
            }
            if let NodeKind::Split(left, right) = self.kind(node) {
                let Some([left, right]) = left.some().zip(right.some()).map(<[NodeId; 2]>::from) else {
                    return Err(format!("{node:?} lacks a child"));
                };
                let n = self.n_rows(left) + self.n_rows(right);
                if n != self.n_rows(node) {
                    return Err(format!("{node:?} counts {} rows, its children {n}", self.n_rows(node)));
                }
                stack.extend([(left, self.time(node)), (right, self.time(node))]);
            } else {
                self.check_leaf(node, &mut held)?;
            }
        }
        for (found, expected, what) in
            [(reached, self.n_nodes(), "nodes in use"), (n_skips, self.skips.n_used(), "skipped cuts")]
        {
            if found != expected {
                return Err(format!("{found} {what}, {expected} counted"));
            }
        }
        Ok(())
    }

    fn check_leaf(&self, leaf: NodeId, held: &mut [bool]) -> Result<(), String> {
        let mut n = 0;
        for row in self.leaf_rows(leaf) {
            if std::mem::replace(&mut held[row as usize], true) {
                return Err(format!("row {row} is in two leaves"));
            }
            if !self.lists.is_linked_back(row) {
                return Err(format!("the row after row {row} does not come after it"));
            }
            n += 1;
        }
        if n != self.n_rows(leaf) || n == 0 {
            return Err(format!("leaf {leaf:?} holds {n} rows and counts {}", self.n_rows(leaf)));
        }
        Ok(())
    }
}
