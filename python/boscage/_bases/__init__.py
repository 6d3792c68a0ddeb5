"""What all estimators have in common, and what those have in addition that sample a posterior."""
