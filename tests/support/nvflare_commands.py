"""Commands of NVFlare in the process of the tests."""

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from nvflare import cli


def nvflare_here(folder: Path, *command: object) -> dict[str, Any]:
    """Run a command of NVFlare in this process. `test_provision` runs them as the library does, each in its own."""
    printed, mask, places = io.StringIO(), os.umask(0o077), list(sys.path)
    words = patch.object(sys, "argv", ["nvflare", "--format", "json", *map(str, command)])
    home = patch.dict(os.environ, HOME=str(folder))
    try:
        with words, home, contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            cli.main()
    finally:
        os.umask(mask)
        sys.path[:] = places
    return dict(json.loads(printed.getvalue().splitlines()[-1])["data"])
