"""The command line: one module a concern, nothing that the Python API does not offer."""
