"""Tables that users bring: opening them, and their columns as numbers, labels and categories."""
