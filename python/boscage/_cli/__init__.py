"""The command line. It offers nothing that the Python API does not."""
