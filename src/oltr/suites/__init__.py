"""Tables and sweeps of the paper: a file, its runs as `oltr train` processes, a table of their reports."""
