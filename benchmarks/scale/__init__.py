"""What a release costs, beside what an expert would write by hand: `python -m benchmarks.scale --help`."""
