"""Other libraries for causal inference, each in a module of its own."""
