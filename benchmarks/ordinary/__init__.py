"""Intervals on ordinary tables of hospitals and registries, some of which no estimator was tuned on."""
