"""How near private estimates come to the truth: `python -m benchmarks.leaderboard --help`."""
