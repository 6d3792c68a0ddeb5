//! A symmetric matrix with a constant diagonal, of which the part below is stored.

use std::ops::Range;

use crate::control::Run;
use crate::error::Result;
use crate::math::vectors::with_vectors;

/// Parts on which threads work; results depend on it, and not on the number of threads.
const PARTS: usize = 8;
/// Rows that are filled at the same time.
const FILLED: usize = 32;
/// Rows that are multiplied at the same time, so that numbers are fetched once for all of them.
const AT_ONCE: usize = 4;

pub(super) struct SymmetricMatrix {
    diagonal: f64,
    parts: Vec<RowBlock>,
}

/// Some rows, of each the entries before the diagonal.
struct RowBlock {
    rows: Range<usize>,
    entries: Vec<f64>,
}

impl SymmetricMatrix {
    /// `fill` turns zeros into the entries of some rows from the given one on, before the diagonal.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn new(
        n_rows: usize,
        diagonal: f64,
        run: &Run<'_>,
        fill: impl Fn(usize, &mut [&mut [f64]]) + Sync,
    ) -> Result<Self> {
        // As many entries in each.
        let start = |part: usize| (n_rows as f64 * (part as f64 / PARTS as f64).sqrt()).round() as usize;
        let parts = run.map(PARTS, |part| {
            let rows = start(part)..start(part + 1);
            let n_entries: usize = rows.clone().sum();
            let mut entries = vec![0.0; n_entries];
            let mut rest = entries.as_mut_slice();
            for first in rows.clone().step_by(FILLED) {
                let own = (first..rows.end.min(first + FILLED)).map(|row| rest.split_off_mut(..row));
                fill(first, &mut own.map(|own| own.expect("as many entries")).collect::<Vec<_>>());
            }
            Ok(RowBlock { rows, entries })
        })?;
        Ok(Self { diagonal, parts })
    }

    /// A matrix with another diagonal, whose entries `replace` makes of these.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn with(
        &self,
        diagonal: f64,
        run: &Run<'_>,
        replace: impl Fn(&mut [f64]) + Sync,
    ) -> Result<Self> {
        let parts = run.map(self.parts.len(), |part| {
            let RowBlock { rows, entries } = &self.parts[part];
            let mut entries = entries.clone();
            replace(&mut entries);
            Ok(RowBlock { rows: rows.clone(), entries })
        })?;
        Ok(Self { diagonal, parts })
    }

    /// The product with `L` vectors side by side.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn product<const L: usize>(
        &self,
        numbers: &[[f64; L]],
        run: &Run<'_>,
    ) -> Result<Vec<[f64; L]>> {
        let parts = run.map(self.parts.len(), |part| Ok(self.parts[part].product(numbers)))?;
        let mut product: Vec<[f64; L]> = numbers.iter().map(|own| own.map(|x| self.diagonal * x)).collect();
        for part in parts {
            for (all, own) in product.iter_mut().zip(&part) {
                for lane in 0..L {
                    all[lane] += own[lane];
                }
            }
        }
        Ok(product)
    }
}

impl RowBlock {
    /// What the entries and their mirror images add to the first rows of a product.
    fn product<const L: usize>(&self, numbers: &[[f64; L]]) -> Vec<[f64; L]> {
        let mut product = vec![[0.0; L]; self.rows.end];
        let at_once = self.rows.len() / AT_ONCE * AT_ONCE;
        let (some, others) = self.entries.split_at((0..at_once).map(|i| self.rows.start + i).sum());
        with_vectors!(|| {
            add_rows::<AT_ONCE, L>(self.rows.start, some, numbers, &mut product);
            add_rows::<1, L>(self.rows.start + at_once, others, numbers, &mut product);
        });
        product
    }
}

/// Adds the products of rows from `first` on, whose entries follow one another, `R` rows at a time.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the processor's vectors")]
#[inline(always)]
fn add_rows<const R: usize, const L: usize>(
    first: usize,
    mut entries: &[f64],
    numbers: &[[f64; L]],
    product: &mut [[f64; L]],
) {
    let mut row = first;
    while !entries.is_empty() {
        let mut own: [&[f64]; R] = [&[]; R];
        for (i, own) in own.iter_mut().enumerate() {
            (*own, entries) = entries.split_at(row + i);
        }
        let (before, here) = product.split_at_mut(row);
        let sums = multiply(own.map(|own| &own[..row]), &numbers[row..row + R], &numbers[..row], before);
        for i in 0..R {
            for lane in 0..L {
                here[i][lane] += sums[i][lane];
            }
            // Entries of two of these rows.
            for j in 0..i {
                let entry = own[i][row + j];
                for lane in 0..L {
                    here[i][lane] += entry * numbers[row + j][lane];
                    here[j][lane] += entry * numbers[row + i][lane];
                }
            }
        }
        row += R;
    }
}

/// The sums of the entries of some rows times numbers; entries times the rows' `own` numbers are added to `mirror`.
#[expect(clippy::inline_always, reason = "as above")]
#[inline(always)]
fn multiply<const R: usize, const L: usize>(
    entries: [&[f64]; R],
    own: &[[f64; L]],
    numbers: &[[f64; L]],
    mirror: &mut [[f64; L]],
) -> [[f64; L]; R] {
    let n = numbers.len();
    let (entries, own, mirror) = (entries.map(|entries| &entries[..n]), &own[..R], &mut mirror[..n]);
    let mut sums = [[0.0; L]; R];
    for j in 0..n {
        let (number, mut mirrored) = (numbers[j], mirror[j]);
        for i in 0..R {
            for lane in 0..L {
                sums[i][lane] += entries[i][j] * number[lane];
                mirrored[lane] += entries[i][j] * own[i][lane];
            }
        }
        mirror[j] = mirrored;
    }
    sums
}
