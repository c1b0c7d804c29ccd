"""The evaluations of three papers, done again with this library: `python -m benchmarks.studies matching`."""
