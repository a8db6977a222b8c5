"""Common code of the benchmark scripts: inputs, processes and their memory, counts of arithmetic, reports."""
