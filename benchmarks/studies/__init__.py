"""The evaluations of two papers, done again with this library: `python -m benchmarks.studies weighting`."""
