"""Where the files of a data set are: in the folder that a user names, or shipped with the benchmarks."""

import argparse
import os
from pathlib import Path

SHIPPED = Path(__file__).parent
"""Small data sets whose licence allows it; each has its LICENSE or NOTICE beside it."""

VARIABLE = "DPCAUSAL_DATA"
"""The environment variable that stands for --data where the option is left out."""


def default_folder() -> Path | None:
    """Return the folder that the environment names."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def add_data_option(parser: argparse.ArgumentParser) -> None:
    """Add the option --data, the folder that holds one folder for each data set."""
    parser.add_argument(
        "--data",
        type=Path,
        default=default_folder(),
        help=f"a folder with the data sets, see `python -m benchmarks.data` (${VARIABLE}, if left out)",
    )


def data_file(path: str, folder: Path | str | None = None) -> Path:
    """Return a file of a data set, such as "nhefs/NHEFS.csv": from the folder, else as it is shipped."""
    for place in (folder, SHIPPED):
        if place is not None and (found := Path(place, path)).is_file():
            return found
    raise FileNotFoundError(
        f"expected {path} in a folder of data sets, got {folder or 'no folder'}; "
        f"`python -m benchmarks.data` says where to get it, --data or ${VARIABLE} where it is"
    )


def is_here(path: str, folder: Path | str | None = None) -> bool:
    """Whether a file of a data set is in the folder or shipped."""
    return any(place is not None and Path(place, path).is_file() for place in (folder, SHIPPED))
