//! Small square matrices that rows of a block of vectors are multiplied with.

use crate::math::vectors::with_vectors;

/// Columns that lie side by side.
const TILE: usize = 4;
/// Rows that are multiplied with a tile at the same time.
const AT_ONCE: usize = 4;
/// A column whose part that is independent of the columns before it has less than this share of its square counts as
/// dependent on them.
const DEPENDENT: f64 = 1e-10;

/// A square matrix whose columns lie in groups of [`TILE`], row after row in each of them. Its width is a multiple of that.
#[derive(Debug, Clone)]
pub(super) struct Tiles {
    width: usize,
    tiles: Vec<[f64; TILE]>,
}

impl Tiles {
    pub(super) fn zero(width: usize) -> Self {
        Self { width, tiles: vec![[0.0; TILE]; width * width / TILE] }
    }

    pub(super) fn at(&self, i: usize, j: usize) -> f64 {
        self.tiles[j / TILE * self.width + i][j % TILE]
    }

    fn at_mut(&mut self, i: usize, j: usize) -> &mut f64 {
        &mut self.tiles[j / TILE * self.width + i][j % TILE]
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (sum, own) in self.tiles.iter_mut().flatten().zip(other.tiles.iter().flatten()) {
            *sum += own;
        }
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        let all = (0..self.width).flat_map(|i| (0..self.width).map(move |j| self.at(i, j)));
        let rows: Vec<f64> = all.collect();
        let mut product = vec![0.0; rows.len()];
        other.add_rows(&rows, &mut product);
        Self::of(self.width, |i, j| product[i * self.width + j])
    }

    pub(super) fn negative(&self) -> Self {
        Self::of(self.width, |i, j| -self.at(i, j))
    }

    pub(super) fn transposed(&self) -> Self {
        Self::of(self.width, |i, j| self.at(j, i))
    }

    fn of(width: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let mut this = Self::zero(width);
        for i in 0..width {
            (0..width).for_each(|j| *this.at_mut(i, j) = entry(i, j));
        }
        this
    }

    /// The length of a column.
    pub(super) fn length(&self, j: usize) -> f64 {
        (0..self.width).map(|i| self.at(i, j) * self.at(i, j)).sum::<f64>().sqrt()
    }

    /// Adds rows times the matrix to `out`.
    pub(super) fn add_rows(&self, rows: &[f64], out: &mut [f64]) {
        let some = AT_ONCE * self.width;
        with_vectors!(|| {
            for (rows, out) in rows.chunks_exact(some).zip(out.chunks_exact_mut(some)) {
                self.add_some::<AT_ONCE>(rows, out);
            }
            let (rows, out) = (rows.chunks_exact(some), out.chunks_exact_mut(some));
            let rows = rows.remainder().chunks_exact(self.width);
            for (row, out) in rows.zip(out.into_remainder().chunks_exact_mut(self.width)) {
                self.add_some::<1>(row, out);
            }
        });
    }

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the processor's vectors")]
    #[inline(always)]
    fn add_some<const R: usize>(&self, rows: &[f64], out: &mut [f64]) {
        let width = self.width;
        let rows: [&[f64]; R] = std::array::from_fn(|r| &rows[r * width..(r + 1) * width]);
        for (t, tile) in self.tiles.chunks_exact(width).enumerate() {
            let at = |r: usize| r * width + t * TILE..r * width + (t + 1) * TILE;
            let rows = rows.map(|row| &row[..tile.len()]);
            let mut sums = [[0.0; TILE]; R];
            (0..R).for_each(|r| sums[r].copy_from_slice(&out[at(r)]));
            for (i, own) in tile.iter().enumerate() {
                for r in 0..R {
                    for lane in 0..TILE {
                        sums[r][lane] += rows[r][i] * own[lane];
                    }
                }
            }
            (0..R).for_each(|r| out[at(r)].copy_from_slice(&sums[r]));
        }
    }

    /// Sets the matrix to the products of the columns of some rows with those of others: on the diagonal and above it, and some
    /// below.
    pub(super) fn set_products(&mut self, rows: &[f64], others: &[f64]) {
        self.tiles.fill([0.0; TILE]);
        let (width, some) = (self.width, AT_ONCE * self.width);
        with_vectors!(|| {
            for (rows, others) in rows.chunks_exact(some).zip(others.chunks_exact(some)) {
                self.add_products::<AT_ONCE>(rows, others);
            }
            let [rows, others] = [rows, others].map(|rows| rows.chunks_exact(some).remainder());
            for (row, other) in rows.chunks_exact(width).zip(others.chunks_exact(width)) {
                self.add_products::<1>(row, other);
            }
        });
    }

    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn add_products<const R: usize>(&mut self, rows: &[f64], others: &[f64]) {
        let width = self.width;
        for (t, tile) in self.tiles.chunks_exact_mut(width).enumerate() {
            let tile = &mut tile[..(t + 1) * TILE];
            let rows: [&[f64]; R] = std::array::from_fn(|r| &rows[r * width..][..tile.len()]);
            let mut factors = [[0.0; TILE]; R];
            (0..R).for_each(|r| factors[r].copy_from_slice(&others[r * width + t * TILE..][..TILE]));
            for (i, sum) in tile.iter_mut().enumerate() {
                for r in 0..R {
                    for lane in 0..TILE {
                        sum[lane] += rows[r][i] * factors[r][lane];
                    }
                }
            }
        }
    }

    /// The upper triangle `Z` with `Z' Z` equal to the matrix, of which the diagonal and what is above it is read; rows of `Z`
    /// that belong to dependent columns are 0. With it its inverse, in which these rows and columns are 0.
    pub(super) fn factor(&self) -> [Self; 2] {
        let mut upper = Self::zero(self.width);
        let mut inverse = Self::zero(self.width);
        for j in 0..self.width {
            for i in 0..j {
                let pivot = upper.at(i, i);
                if pivot > 0.0 {
                    let known: f64 = (0..i).map(|k| upper.at(k, i) * upper.at(k, j)).sum();
                    *upper.at_mut(i, j) = (self.at(i, j) - known) / pivot;
                }
            }
            let known: f64 = (0..j).map(|k| upper.at(k, j) * upper.at(k, j)).sum();
            let rest = self.at(j, j) - known;
            if rest > DEPENDENT * self.at(j, j) {
                let pivot = rest.sqrt();
                *upper.at_mut(j, j) = pivot;
                *inverse.at_mut(j, j) = 1.0 / pivot;
                for i in 0..j {
                    let known: f64 = (i..j).map(|k| inverse.at(i, k) * upper.at(k, j)).sum();
                    *inverse.at_mut(i, j) = -known / pivot;
                }
            }
        }
        [upper, inverse]
    }
}
