"""Adapters to other systems, above site and federation."""
