"""Rows live here and nowhere else; what leaves is noisy, paid for, and leaves through `Vault.release`."""

from dpcausal.vault.door import Vault

__all__ = ["Vault"]
