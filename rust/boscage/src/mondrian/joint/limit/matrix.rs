//! A symmetric matrix with a constant diagonal, of which the part below is stored.

use std::ops::Range;

use crate::control::Run;
use crate::error::Result;

/// Parts on which threads work; results depend on it, and not on the number of threads.
const PARTS: usize = 8;
/// Numbers of a row whose products are added apart, so that they do not wait for each other.
const APART: usize = 4;

pub(super) struct SymmetricMatrix {
    diagonal: f64,
    parts: Vec<Part>,
}

/// Some rows, of each the entries before the diagonal.
struct Part {
    rows: Range<usize>,
    entries: Vec<f64>,
}

impl SymmetricMatrix {
    /// `fill` turns zeros into the entries of a row before the diagonal.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn new(
        n_rows: usize,
        diagonal: f64,
        run: &Run<'_>,
        fill: impl Fn(usize, &mut [f64]) + Sync,
    ) -> Result<Self> {
        // As many entries in each.
        let start = |part: usize| (n_rows as f64 * (part as f64 / PARTS as f64).sqrt()).round() as usize;
        let parts = run.map(PARTS, |part| {
            let rows = start(part)..start(part + 1);
            let n_entries: usize = rows.clone().sum();
            let mut entries = vec![0.0; n_entries];
            let mut rest = entries.as_mut_slice();
            for row in rows.clone() {
                let (own, others) = rest.split_at_mut(row);
                fill(row, own);
                rest = others;
            }
            Ok(Part { rows, entries })
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

impl Part {
    /// What the entries and their mirror images add to the first rows of a product.
    fn product<const L: usize>(&self, numbers: &[[f64; L]]) -> Vec<[f64; L]> {
        let mut product = vec![[0.0; L]; self.rows.end];
        let mut rest = self.entries.as_slice();
        for row in self.rows.clone() {
            let (entries, others) = rest.split_at(row);
            rest = others;
            let own = numbers[row];
            let (before, here) = product.split_at_mut(row);
            let sum = multiply(entries, &numbers[..row], own, before);
            for lane in 0..L {
                here[0][lane] += sum[lane];
            }
        }
        product
    }
}

/// The sum of entries times numbers; entries times `own` are added to `mirror`.
fn multiply<const L: usize>(
    entries: &[f64],
    numbers: &[[f64; L]],
    own: [f64; L],
    mirror: &mut [[f64; L]],
) -> [f64; L] {
    let mut sums = [[0.0; L]; APART];
    let (entries, last) = entries.as_chunks::<APART>();
    let (numbers, last_numbers) = numbers.as_chunks::<APART>();
    let (mirror, last_mirror) = mirror.as_chunks_mut::<APART>();
    for ((entries, numbers), mirror) in entries.iter().zip(numbers).zip(mirror) {
        for i in 0..APART {
            for lane in 0..L {
                sums[i][lane] += entries[i] * numbers[i][lane];
                mirror[i][lane] += entries[i] * own[lane];
            }
        }
    }
    for ((entry, numbers), mirror) in last.iter().zip(last_numbers).zip(last_mirror) {
        for lane in 0..L {
            sums[0][lane] += entry * numbers[lane];
            mirror[lane] += entry * own[lane];
        }
    }
    std::array::from_fn(|lane| sums.iter().map(|sums| sums[lane]).sum())
}
