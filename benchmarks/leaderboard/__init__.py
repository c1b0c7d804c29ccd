"""Every estimator beside every peer, on the same tables: `python -m benchmarks.leaderboard --help`."""
