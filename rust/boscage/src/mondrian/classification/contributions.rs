//! What each tree adds to class probabilities, and to the function that all trees explain together.

use crate::control::Run;
use crate::data::{Rows, Scalar};
use crate::error::{Error, Result};
use crate::explain::{Contributions, LeafTree};
use crate::mondrian::classification::class_counts::{Class, ClassCounts};
use crate::mondrian::classification::classifier::{JointState, MondrianClassifier};
use crate::mondrian::classification::joint::{JointFunction, TreesFunction};
use crate::mondrian::classification::kneser_ney::{Buffers, InTree, Predictor};
use crate::mondrian::explain::{TreeContributions, covered_trees, of_paths, shapley};
use crate::mondrian::forest::gains::split_gains;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::tree::Tree;

/// The average of the trees' probabilities, class by class, then the joint function's values, if there is one, and then the
/// weight of what trees say of all their rows, if it counts. The forest's probabilities follow from these by its link.
struct ClassContributions<'a> {
    live: Vec<Class>,
    n_codes: usize,
    n_trees: f64,
    gamma: f64,
    joint: Option<&'a TreesFunction>,
    has_of_all: bool,
}

/// Memory for one tree's prediction.
#[derive(Default)]
struct OfTree {
    buffers: Buffers,
    proba: Vec<f64>,
    function: Vec<f64>,
}

impl TreeContributions<ClassCounts> for ClassContributions<'_> {
    type Buffers = OfTree;

    fn n_outputs(&self) -> usize {
        self.live.len() * (1 + usize::from(self.joint.is_some())) + usize::from(self.has_of_all)
    }

    fn of_tree<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, ClassCounts>,
        stops: &[Stop],
        OfTree { buffers, proba, function }: &mut OfTree,
        out: &mut [f64],
    ) {
        proba.clear();
        proba.resize(self.n_codes, 0.0);
        let predictor = Predictor { number: tree_index, counts: InTree { tree, stops }, gamma: self.gamma };
        let of_all = predictor.predict(stops, buffers, proba.as_mut_slice());
        let base = of_all.base / self.live.len() as f64;
        if self.has_of_all {
            out[self.n_outputs() - 1] = of_all.all / self.n_trees;
        }
        let (of_classes, rest) = out.split_at_mut(self.live.len());
        for (out, &class) in of_classes.iter_mut().zip(&self.live) {
            *out = (proba[class as usize] + base) / self.n_trees;
        }
        if let Some(joint) = self.joint {
            function.clear();
            function.resize(self.live.len() - 1, 0.0);
            joint.visit(tree_index, tree, 0, stops, function);
            // The values of all classes sum to 0.
            let last = -function.iter().sum::<f64>();
            rest.iter_mut().zip(function.iter().chain(std::iter::once(&last))).for_each(|(out, &f)| *out = f);
        }
    }
}

impl MondrianClassifier {
    /// Shapley values of the average of the trees' class probabilities and, for the joint posterior, of the values of the
    /// function that all trees explain together: first the one, then the other, class by class. If the calibration draws to the
    /// shares of the classes or has a trend, those of the weight of what trees say of all their rows follow.
    /// [`calibration_link`](Self::calibration_link) makes probabilities of these.
    ///
    /// # Errors
    /// A number of features other than in `fit`; a joint posterior whose function is no sum over trees
    /// ([`may_have_limit`](Self::may_have_limit)); an interrupt.
    pub fn shapley(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Contributions> {
        shapley(&self.forest, &self.tree_contributions(run)?, rows, run)
    }

    /// The same of the splits on each row's paths. A base belongs to a row.
    ///
    /// # Errors
    /// As [`MondrianClassifier::shapley`].
    pub fn path_contributions(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Contributions> {
        of_paths(&self.forest, &self.tree_contributions(run)?, rows, run)
    }

    /// The trees, whose leaves hold what they add to the same numbers.
    ///
    /// # Errors
    /// As [`MondrianClassifier::shapley`].
    pub fn leaf_trees(&self, run: &Run<'_>) -> Result<Vec<LeafTree>> {
        let trees = covered_trees(&self.forest, &self.tree_contributions(run)?, run)?;
        Ok(trees.into_iter().map(|tree| tree.tree.export()).collect())
    }

    /// How much the splits of each feature explain of the classes' indicators, in sums of squares (Gini's impurity times the
    /// number of rows), over all trees: less what they would if the feature had nothing to do with the classes.
    ///
    /// # Errors
    /// An interrupt.
    pub fn split_gains(&self, run: &Run<'_>) -> Result<Vec<f64>> {
        let weight = |codes: &[(f64, f64)]| codes.iter().map(|(_, weight)| weight).sum::<f64>();
        let squares = |codes: &[(f64, f64)]| {
            let n = weight(codes);
            let mut sorted = codes.to_vec();
            sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
            let counts = sorted.chunk_by(|a, b| a.0 == b.0).map(|same| weight(same).powi(2));
            n - counts.sum::<f64>() / n
        };
        split_gains(&self.forest, f64::from, squares, run)
    }

    fn tree_contributions<'a>(&'a self, run: &Run<'_>) -> Result<ClassContributions<'a>> {
        let link = self.posterior.link(&self.forest, run)?;
        let joint = self.posterior.joint(&self.forest, run)?.filter(|_| link.weight > 0.0);
        let by_trees = |state: &'a JointState| match &state.function {
            JointFunction::Trees(function) => Ok(function),
            JointFunction::Limit { .. } => {
                let expected = "trees where contributions of trees add up";
                Err(Error::InvalidSetting { name: "joint_kernel", expected, found: "the limit".into() })
            }
        };
        Ok(ClassContributions {
            live: self.posterior.classes.live(),
            n_codes: self.posterior.classes.labels.len(),
            n_trees: self.forest.settings.n_estimators as f64,
            gamma: self.posterior.settings.discount * self.forest.domain.total_weight(),
            joint: joint.map(by_trees).transpose()?,
            has_of_all: link.has_of_all(),
        })
    }
}
