"""Measurements of dpcausal, each a command: `python -m benchmarks.<name> --help`. Data are seeded; noise is not."""
