"""Ensembles as models of Treelite."""

from __future__ import annotations

import treelite
from treelite.model_builder import Metadata, ModelBuilder, PostProcessorFunc, TreeAnnotation

from boscage.export._ensemble import AddedTree, Ensemble, MeanOfDraws


def trees_of(ensemble: Ensemble) -> treelite.Model:
    """The model of an ensemble whose predictions are sums over trees."""
    _check(ensemble)
    n_outputs, n_trees = len(ensemble.constants), len(ensemble.trees)
    is_classifier = ensemble.classes is not None
    builder = ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=Metadata(
            num_feature=ensemble.n_features,
            task_type="kMultiClf" if is_classifier else "kRegressor",
            average_tree_output=False,
            num_target=1,
            num_class=[n_outputs],
            leaf_vector_shape=(1, n_outputs),
        ),
        tree_annotation=TreeAnnotation(
            num_tree=n_trees,
            target_id=[0] * n_trees,
            class_id=[-1 if is_classifier else 0] * n_trees,
        ),
        postprocessor=PostProcessorFunc(
            name="identity_multiclass" if is_classifier else "identity"
        ),
        base_scores=ensemble.constants.tolist(),
    )
    for tree in ensemble.trees:
        _add(builder, tree)
    return builder.commit()


def _add(builder: ModelBuilder, tree: AddedTree) -> None:
    left, right = tree.children_left.tolist(), tree.children_right.tolist()
    features, thresholds = tree.feature.tolist(), tree.threshold.tolist()
    missing_left, values = tree.missing_left.tolist(), tree.values.tolist()
    builder.start_tree()
    for node in range(len(features)):
        builder.start_node(node)
        if left[node] < 0:
            builder.leaf(values[node] if len(values[node]) > 1 else values[node][0])
        else:
            builder.numerical_test(
                feature_id=features[node],
                threshold=thresholds[node],
                default_left=missing_left[node],
                opname="<=",
                left_child_key=left[node],
                right_child_key=right[node],
            )
        builder.end_node()
    builder.end_tree()


def _check(ensemble: Ensemble) -> None:
    """Refuses ensembles that Treelite cannot represent."""
    if ensemble.trend:
        why = "a forest with a trend adds a linear function to its trees; fit it with trend=None"
    elif isinstance(ensemble.link, MeanOfDraws):
        why = "the probabilities of BART are means of a function of sums over trees"
    elif ensemble.link is not None:
        why = (
            "calibrated probabilities are a function of sums over trees; set calibration=None (and "
            "posterior='kneser-ney')"
        )
    elif not ensemble.trees:
        why = "the model predicts the same for all rows, without a tree"
    else:
        return
    raise ValueError(f"Treelite predicts sums over trees, and {why}. to_onnx exports it")
