"""Effects that vary between units by number of units and kind of table: `python -m benchmarks.heterogeneity --help`."""
