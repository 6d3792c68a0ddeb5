"""Feature rates learned from the targets: ``feature_weights="learned"``.

The cuts of a Mondrian process do not depend on targets, so irrelevant features cost it accuracy.
But its rates are free: how often it cuts each feature, and where along it. The modules here propose
candidates, try each with a small forest, and keep the one that best predicts rows left out. The
rates are then fixed; the process changes in nothing else.
"""
