"""Commands whose files only their owner can read."""

import os
from typing import Any

from typer.core import TyperGroup


class PrivateFiles(TyperGroup):
    """Commands that create files and folders for the owner only."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 (as the parent has it)
        """Run a command."""
        before = os.umask(0o077)
        try:
            return super().invoke(ctx)
        finally:
            os.umask(before)
