"""The base of the Mondrian forests, in stages that build on each other."""
