"""What estimators have in common, and what those that sample a posterior do beside."""
