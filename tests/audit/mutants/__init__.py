"""Deliberately broken variants of the package, each with the check of the audit that must catch it."""

from tests.audit.mutants import curves, diagnostics, noise, opening, payment, secure_sums, seen, sensitivity
from tests.audit.mutants.mutant import MUTANTS, Mutant, found

__all__ = [
    "MUTANTS",
    "Mutant",
    "curves",
    "diagnostics",
    "found",
    "noise",
    "opening",
    "payment",
    "secure_sums",
    "seen",
    "sensitivity",
]
