"""What several tests and benchmarks need: databases, site folders, processes."""
