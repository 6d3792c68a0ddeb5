//! A sampler of indices in proportion to numbers that change: of the feature of a cut, by the features' rates.

/// Non-negative numbers under a binary tree of their sums: to set one, and to pick one in proportion, takes
/// logarithmic time. The sums are a function of the numbers alone, not of the order in which they were set.
#[derive(Debug, Clone)]
pub(super) struct SumTree {
    /// The sums, root at 1; the numbers begin at `leaves`.
    sums: Vec<f64>,
    leaves: usize,
}

impl SumTree {
    pub(super) fn new(n: usize) -> Self {
        let leaves = n.next_power_of_two();
        Self { sums: vec![0.0; 2 * leaves], leaves }
    }

    /// Of no numbers.
    pub(super) const fn empty() -> Self {
        Self { sums: Vec::new(), leaves: 0 }
    }

    /// The numbers. After a change [`SumTree::sum`] must be called.
    pub(super) fn numbers(&mut self) -> &mut [f64] {
        &mut self.sums[self.leaves..]
    }

    /// Copies the numbers of another tree of the same size.
    pub(super) fn copy_numbers(&mut self, other: &Self) {
        self.sums[self.leaves..].copy_from_slice(&other.sums[self.leaves..]);
    }

    pub(super) fn sum(&mut self) {
        let mut n = self.leaves;
        while n > 1 {
            // A row of the tree from the row below it.
            let (above, below) = self.sums[n / 2..2 * n].split_at_mut(n / 2);
            for (sum, pair) in above.iter_mut().zip(below.as_chunks::<2>().0) {
                *sum = pair[0] + pair[1];
            }
            n /= 2;
        }
    }

    /// Sets a number; pushes the former values of it and the sums above it on a stack.
    pub(super) fn change(&mut self, index: usize, number: f64, stack: &mut Vec<f64>) {
        let mut i = self.leaves + index;
        let mut sum = number;
        loop {
            stack.push(std::mem::replace(&mut self.sums[i], sum));
            if i == 1 {
                break;
            }
            // The sum is the same in either order.
            sum += self.sums[i ^ 1];
            i /= 2;
        }
    }

    /// Undoes the last change that is on the stack.
    pub(super) fn restore(&mut self, index: usize, stack: &mut Vec<f64>) {
        let mut i = self.leaves + index;
        let start = stack.len() - 1 - i.ilog2() as usize;
        for &sum in &stack[start..] {
            self.sums[i] = sum;
            i /= 2;
        }
        stack.truncate(start);
    }

    pub(super) fn total(&self) -> f64 {
        self.sums[1]
    }

    /// The index at fraction `u` of the total; never one whose number is zero.
    pub(super) fn find(&self, u: f64) -> usize {
        let sums = &self.sums[..2 * self.leaves];
        let (mut i, mut rest) = (1, u * sums[1]);
        if !self.leaves.ilog2().is_multiple_of(2) {
            let right = lies_beyond(rest, sums[2], sums[3]);
            rest = either(right, rest, rest - sums[2]);
            i = 2 + right as usize;
        }
        // Two depths at a time: the first choice and both possible second ones are computed side by side,
        // since every fit waits for this loop.
        while i < self.leaves {
            let below = &sums[4 * i..4 * i + 4];
            let beyond = rest - sums[2 * i];
            let right = lies_beyond(rest, sums[2 * i], sums[2 * i + 1]);
            let of_left = lies_beyond(rest, below[0], below[1]);
            let of_right = lies_beyond(beyond, below[2], below[3]);
            let again = (of_left & !right) | (of_right & right);
            rest = either(right, rest, beyond);
            rest = either(again, rest, rest - either(right, below[0], below[2]));
            i = 4 * i + 2 * right as usize + again as usize;
        }
        i - self.leaves
    }
}

/// Whether a number lies beyond the left one of two sums and the right one is not zero, as 0 or 1: a branch
/// would be unpredictable.
fn lies_beyond(rest: f64, left: f64, right: f64) -> u64 {
    u64::from(right > 0.0) & u64::from(rest >= left)
}

/// One number if `which` is 0, the other if it is 1.
fn either(which: u64, zero: f64, one: f64) -> f64 {
    f64::from_bits((zero.to_bits() & which.wrapping_sub(1)) | (one.to_bits() & which.wrapping_neg()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_tree_finds_what_a_walk_of_single_depths_finds() {
        let mut stream = crate::random::keyed::Stream::new(0, 0);
        for n in 1..70 {
            let mut tree = SumTree::new(n);
            let numbers: Vec<f64> =
                (0..n).map(|_| if stream.below(3) == 0 { 0.0 } else { stream.unit() }).collect();
            tree.numbers()[..n].copy_from_slice(&numbers);
            tree.sum();
            for _ in 0..100 {
                let u = stream.unit();
                let (mut i, mut rest) = (1, u * tree.total());
                while i < tree.leaves {
                    let right = tree.sums[2 * i + 1] > 0.0 && rest >= tree.sums[2 * i];
                    rest -= if right { tree.sums[2 * i] } else { 0.0 };
                    i = 2 * i + usize::from(right);
                }
                assert_eq!(tree.find(u), i - tree.leaves);
            }
        }
    }

    #[test]
    fn sum_tree_picks_in_proportion_and_never_zero() {
        let numbers = [0.0, 2.0, 0.0, 0.0, 1.0, 3.0, 0.0];
        let mut tree = SumTree::new(numbers.len());
        tree.numbers()[..numbers.len()].copy_from_slice(&numbers);
        tree.sum();
        assert_eq!(tree.total(), 6.0);
        let picked: Vec<usize> = (0..6).map(|i| tree.find((f64::from(i) + 0.5) / 6.0)).collect();
        assert_eq!(picked, [1, 1, 4, 5, 5, 5]);
        assert_eq!(tree.find(1.0 - f64::EPSILON / 2.0), 5);
        let (before, mut stack) = (tree.sums.clone(), Vec::new());
        tree.change(5, 0.0, &mut stack);
        assert_eq!((tree.total(), tree.find(1.0 - f64::EPSILON / 2.0)), (3.0, 4));
        tree.change(1, 1.0, &mut stack);
        tree.restore(1, &mut stack);
        tree.restore(5, &mut stack);
        assert_eq!(tree.sums, before);
    }
}
