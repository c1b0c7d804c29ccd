"""Deliberately broken variants of the package, each with the check of the audit that must catch it."""

from tests.audit.twins import curves, diagnostics, noise, opening, payment, seen, sensitivity
from tests.audit.twins.twin import TWINS, Twin, found

__all__ = ["TWINS", "Twin", "curves", "diagnostics", "found", "noise", "opening", "payment", "seen", "sensitivity"]
