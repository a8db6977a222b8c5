"""What the benchmark scripts share: inputs, processes and their memory, counts of arithmetic, reports."""
