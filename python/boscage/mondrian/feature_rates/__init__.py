"""Feature rates learned from the targets: ``feature_weights="learned"``."""
