"""List the data sets and check a folder of them: `python -m benchmarks.data FOLDER`.

The folder holds one folder for each data set. Each file is present there, or shipped in this repository, or absent; a
file that is not the one of the catalogue is wrong, and then the command ends with 1.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.data.catalogue import CATALOGUE, DataFile, DataSource
from benchmarks.data.files import SHIPPED, VARIABLE, default_folder

WRONG = "WRONG CHECKSUM"


def state(source: DataSource, file: DataFile, folder: Path | None) -> str:
    """Return whether a file is there, and whether it is the one of the catalogue."""
    places = {"present": folder, "shipped": SHIPPED}
    for word, place in places.items():
        for name in (file.name, file.name.removesuffix(".gz")) if file.sha256 is None else (file.name,):
            if place is not None and (found := place / source.name / name).is_file():
                if file.sha256 is None:
                    return f"{word}, not checked: no checksum is known"
                return word if hashlib.sha256(found.read_bytes()).hexdigest() == file.sha256 else WRONG
    return "absent"


def listed(folder: Path | None) -> Iterator[str]:
    """Yield what is known about each data set, a line for each fact and each file."""
    for source in CATALOGUE:
        yield f"{source.name}: {source.title}"
        yield f"    source      {source.source}"
        yield f"    licence     {source.licence}"
        if source.credential:
            yield f"    credential  {source.credential}"
        yield f"    papers      {source.used_by}"
        for file in source.files:
            size = "" if file.size is None else f"{file.size:,} bytes, sha256 {file.sha256}, "
            yield f"    {source.name}/{file.name}: {size}{state(source, file, folder)}"
        yield ""


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.data", description=__doc__)
    parser.add_argument(
        "folder", type=Path, nargs="?", default=default_folder(), help=f"what to check (${VARIABLE}, if left out)"
    )
    folder = parser.parse_args(given).folder
    if folder is not None and not folder.is_dir():
        parser.error(f"expected a folder, got {folder}")
    wrong = 0
    for line in listed(folder):
        print(line)
        wrong += line.endswith(WRONG)
    if wrong:
        sys.exit(f"{wrong} of these files differ from the catalogue: get them again from their source")


if __name__ == "__main__":
    main()
