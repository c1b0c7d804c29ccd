"""Readers of frames, files and databases."""
