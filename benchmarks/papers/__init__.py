"""The experiments of the five papers: `python -m benchmarks.papers --help`."""
