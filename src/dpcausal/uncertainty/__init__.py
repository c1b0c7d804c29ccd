"""Intervals, joint estimates of several numbers, and derivatives for their covariances."""
