"""Figures of effects, curves, diagnoses and budgets."""
