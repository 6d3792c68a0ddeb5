"""The commands, a file for each: `run(args)` does what was typed."""
