"""Effects that vary between units, learned with privacy and without: `python -m benchmarks.heterogeneity --help`."""
