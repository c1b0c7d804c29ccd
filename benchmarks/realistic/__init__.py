"""Intervals on tables such as practice has."""
