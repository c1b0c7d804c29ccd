"""Heterogeneous treatment effects."""
