//! The terms of splits on the paths of rows.

use crate::control::Run;
use crate::data::{Rows, Scalar};
use crate::error::Result;
use crate::explain::Contributions;
use crate::mondrian::explain::TreeContributions;
use crate::mondrian::forest::Forest;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::prediction::walk;
use crate::mondrian::process::domain::Domain;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::statistics::Statistics;

/// For every row the prediction at the roots of the trees, and what further splits add, by their features.
///
/// # Errors
/// A number of features other than in `fit`; an interrupt.
pub(crate) fn of_paths<P: Statistics, T: TreeContributions<P>>(
    forest: &Forest<P>,
    by_tree: &T,
    rows: Rows<'_>,
    run: &Run<'_>,
) -> Result<Contributions> {
    Contributions::check_room(rows.n_rows(), rows.n_features(), by_tree.n_outputs())?;
    let terms = PathTerms { by_tree, domain: &forest.domain };
    let mut all = Contributions::default();
    for Gathered { found, .. } in walk::predict(forest, rows, run, &terms)? {
        all.base.extend(found.base);
        all.values.extend(found.values);
    }
    Ok(all)
}

struct PathTerms<'a, T> {
    by_tree: &'a T,
    domain: &'a Domain,
}

struct Gathered<B> {
    found: Contributions,
    buffers: B,
    /// The predictions with all stops so far, and with one less.
    now: Vec<f64>,
    before: Vec<f64>,
}

impl<P: Statistics, T: TreeContributions<P>> Visitor<P> for PathTerms<'_, T> {
    type Chunk = Gathered<T::Buffers>;

    fn start(&self, n_rows: usize) -> Self::Chunk {
        let n = self.by_tree.n_outputs();
        Gathered {
            found: Contributions::zeros(n_rows * n, n_rows * self.domain.n_features() * n),
            buffers: T::Buffers::default(),
            now: vec![0.0; n],
            before: vec![0.0; n],
        }
    }

    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, P>,
        row: usize,
        stops: &[Stop],
        chunk: &mut Self::Chunk,
    ) {
        let (n, n_features) = (self.by_tree.n_outputs(), self.domain.n_features());
        let Gathered { found, buffers, now, before } = chunk;
        for depth in 0..stops.len() {
            self.by_tree.of_tree(tree_index, tree, &stops[..=depth], buffers, now);
            if depth == 0 {
                let base = &mut found.base[row * n..(row + 1) * n];
                base.iter_mut().zip(&*now).for_each(|(base, now)| *base += now);
            } else {
                let coordinate = tree.arena.cut(stops[depth - 1].node).coordinate as usize;
                let feature = self.domain.feature_of(coordinate);
                let values = &mut found.values[(row * n_features + feature) * n..][..n];
                let terms = now.iter().zip(&*before).map(|(now, before)| now - before);
                values.iter_mut().zip(terms).for_each(|(value, term)| *value += term);
            }
            std::mem::swap(now, before);
        }
    }
}
