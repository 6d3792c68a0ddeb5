"""The base of the Mondrian forests, in five stages that build on each other."""
