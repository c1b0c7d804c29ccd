"""Rows live here and nowhere else; what leaves is noisy, paid for, and leaves through `Vault.release`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcausal.vault.door import Vault

__all__ = ["Vault"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (the name's own type)
    if name != "Vault":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dpcausal.vault.door import Vault  # noqa: PLC0415 (loads ledgers and readers of tables, which plans do without)

    return Vault
