"""What users give beside numbers: categories, ids and weights of rows, weights of classes."""
