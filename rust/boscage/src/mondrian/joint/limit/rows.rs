//! Rows as the limit sees them: their places along each feature, and the distances of pairs.
//!
//! The time of all pairs grows with the square of the rows times the features, so distances are added in tiles: some rows, some
//! features, and some of the rows before them, which stay in the fast memory. The distance of a pair is the same sum in the
//! same order anyhow.

use crate::data::{RowId, Scalar, Table};
use crate::math::vectors::with_vectors;
use crate::mondrian::joint::limit::Covariance;

/// Features whose distances are added in one pass.
const FEATURES: usize = 4;
/// Points for which they are added in the same pass.
const POINTS: usize = 2;
/// Rows in one pass.
const TILE: usize = 512;

/// Rows in a common order.
#[derive(Debug, Clone)]
pub(crate) struct LimitRows {
    /// The features that are ever cut.
    features: Vec<Feature>,
    n_rows: usize,
}

#[derive(Debug, Clone)]
struct Feature {
    number: usize,
    /// From where coordinates are counted: small differences of large numbers stay exact.
    origin: f64,
    rate: f64,
    /// The rows' places in units of the distance.
    places: Vec<f64>,
}

impl Feature {
    fn place(&self, coordinate: f64) -> f64 {
        self.rate * (coordinate - self.origin)
    }
}

impl LimitRows {
    /// `rates` are those of the coordinates, which `table` has.
    pub(crate) fn new<S: Scalar>(table: Table<'_, S>, order: &[RowId], rates: &[f64]) -> Self {
        let cut = rates.iter().enumerate().filter(|(_, rate)| **rate > 0.0);
        let features = cut.map(|(number, &rate)| {
            let of = |row: &RowId| -> f64 { table.row(*row)[number].into() };
            let feature = Feature { number, origin: order.first().map_or(0.0, of), rate, places: Vec::new() };
            Feature { places: order.iter().map(|row| feature.place(of(row))).collect(), ..feature }
        });
        Self { features: features.collect(), n_rows: order.len() }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Those at some places.
    pub(crate) fn at(&self, places: &[usize]) -> Self {
        let of = |feature: &Feature| Feature {
            places: places.iter().map(|&place| feature.places[place]).collect(),
            ..*feature
        };
        Self { features: self.features.iter().map(of).collect(), n_rows: places.len() }
    }

    /// Whether two rows have the same covariances.
    pub(crate) fn are_copies(&self, a: usize, b: usize) -> bool {
        self.features.iter().all(|feature| feature.places[a] == feature.places[b])
    }

    /// Adds the distances of points, given by their coordinates, from all rows. `distances` has a slice for each point.
    pub(crate) fn add_distances_of(&self, x: impl Fn(usize, usize) -> f64, distances: &mut [&mut [f64]]) {
        let place = |point: usize, feature: usize| {
            let feature = &self.features[feature];
            feature.place(x(point, feature.number))
        };
        self.add_distances(place, distances);
    }

    /// Adds the distances of the rows from `first` on, of each from all rows before it.
    pub(crate) fn add_distances_before(&self, first: usize, distances: &mut [&mut [f64]]) {
        self.add_distances(|row, feature| self.features[feature].places[first + row], distances);
    }

    /// Turns zeros into the covariances of some of the rows that these are among with these rows.
    pub(crate) fn covariances_with(
        &self,
        (all, some): (&Self, &[usize]),
        covariance: &impl Covariance,
        entries: &mut [&mut [f64]],
    ) {
        self.add_distances(|i, feature| all.features[feature].places[some[i]], entries);
        for own in entries {
            covariance.replace(own);
        }
    }

    /// Turns zeros into the covariances of the rows from `first` on, of each with all rows before it.
    pub(crate) fn covariances_before(
        &self,
        first: usize,
        covariance: &impl Covariance,
        entries: &mut [&mut [f64]],
    ) {
        self.add_distances_before(first, entries);
        for before in entries {
            covariance.replace(before);
        }
    }

    /// The same, and of each with itself.
    pub(crate) fn covariances(&self, first: usize, covariance: &impl Covariance, entries: &mut [&mut [f64]]) {
        let (mut before, own): (Vec<_>, Vec<_>) =
            entries.iter_mut().enumerate().map(|(i, entries)| entries.split_at_mut(first + i)).unzip();
        self.covariances_before(first, covariance, &mut before);
        for own in own {
            own[0] = covariance.of_itself();
        }
    }

    /// Adds the distances of points from the first rows, as many as each point's slice has. Each point has a place in each feature,
    /// which is given by its index.
    fn add_distances(&self, place: impl Fn(usize, usize) -> f64, distances: &mut [&mut [f64]]) {
        let longest = distances.iter().map(|own| own.len()).max().unwrap_or(0);
        let (some, rest) = self.features.as_chunks::<FEATURES>();
        for start in (0..longest).step_by(TILE) {
            for (group, features) in some.iter().enumerate() {
                add_tile((features, group * FEATURES), &place, start, distances);
            }
            for (feature, i) in rest.iter().zip(some.len() * FEATURES..) {
                add_tile((std::array::from_ref(feature), i), &place, start, distances);
            }
        }
    }
}

/// Adds some features' distances of all points from the rows of a tile. The index of the first feature is given.
fn add_tile<const F: usize>(
    (features, first): (&[Feature; F], usize),
    place: &impl Fn(usize, usize) -> f64,
    start: usize,
    distances: &mut [&mut [f64]],
) {
    for (group, points) in distances.chunks_mut(POINTS).enumerate() {
        let own = |i: usize| std::array::from_fn(|feature| place(group * POINTS + i, first + feature));
        let end = |slice: &[f64]| slice.len().min(start + TILE);
        let mut common = start;
        if let [a, b] = points {
            common = end(a).min(end(b)).max(start);
            if common > start {
                add(features, [own(0), own(1)], start, [&mut a[start..common], &mut b[start..common]]);
            }
        }
        for (i, point) in points.iter_mut().enumerate() {
            let end = end(point);
            if end > common {
                add(features, [own(i)], common, [&mut point[common..end]]);
            }
        }
    }
}

/// Adds some features' distances of `P` points, which have these places, from the rows from `start` on.
fn add<const F: usize, const P: usize>(
    features: &[Feature; F],
    own: [[f64; F]; P],
    start: usize,
    mut distances: [&mut [f64]; P],
) {
    let n = distances[0].len();
    let places = features.each_ref().map(|feature| &feature.places[start..start + n]);
    with_vectors!(move || {
        let distances = distances.each_mut().map(|own| &mut own[..n]);
        for row in 0..n {
            for point in 0..P {
                let mut distance = distances[point][row];
                for i in 0..F {
                    distance += (places[i][row] - own[point][i]).abs();
                }
                distances[point][row] = distance;
            }
        }
    });
}
