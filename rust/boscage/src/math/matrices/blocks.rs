//! Blocks of matrices, and their products with the processor's vectors.

/// Rows and columns of a block.
pub(super) const BLOCK: usize = 64;
/// Columns that lie side by side.
pub(super) const LANES: usize = 8;
/// Rows that are multiplied with some columns at the same time.
pub(super) const AT_ONCE: usize = 4;
/// Products that are added to all sums of a block before the next: their columns stay in the fastest memory.
pub(super) const DEPTH: usize = 256;

/// Some columns of numbers: [`LANES`] side by side.
pub(super) type Group = Vec<[f64; LANES]>;

/// Subtracts the products of `R` rows with [`LANES`] columns from places of `out`, whose rows have a width; the first place is
/// given.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the processor's vectors")]
#[inline(always)]
pub(super) fn subtract<const R: usize>(
    rows: [&[f64]; R],
    columns: &[[f64; LANES]],
    out: &mut [f64],
    (width, first): (usize, usize),
) {
    let rows = rows.map(|row| &row[..columns.len()]);
    let mut sums = [[0.0; LANES]; R];
    for (r, sums) in sums.iter_mut().enumerate() {
        sums.copy_from_slice(&out[r * width + first..][..LANES]);
    }
    for (k, column) in columns.iter().enumerate() {
        for r in 0..R {
            for lane in 0..LANES {
                sums[r][lane] -= rows[r][k] * column[lane];
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        out[r * width + first..][..LANES].copy_from_slice(sums);
    }
}

/// Rows of some length as columns.
pub(super) fn transposed<'a>(rows: impl Iterator<Item = &'a [f64]>, length: usize) -> Vec<Group> {
    let mut groups = vec![vec![[0.0; LANES]; length]; BLOCK / LANES];
    for (i, row) in rows.enumerate() {
        let group = &mut groups[i / LANES];
        group.iter_mut().zip(row).for_each(|(lanes, &entry)| lanes[i % LANES] = entry);
    }
    groups
}
