"""Files of text that are not Unicode throughout, such as those of Excel in a country with umlauts.

DuckDB leaves out each record of a .csv file that has such bytes in a declared column. So one cell would decide whether
its whole record counts, and an effect would be that in people whose wards are written without umlauts.
"""

import codecs
import gzip
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from dpcausal.errors import TableError

_CHUNK = 4_000_000


def unicode_files(files: Sequence[str], folder: str, owner: object) -> list[str]:
    """Return files with the same records that are Unicode throughout: private copies of those that are not.

    In a copy the sign U+FFFD stands for what is not Unicode. It replaces no comma, quotation mark or end of a line, so
    every record stays where it is, and only the cells with such bytes are not read as declared.

    Args:
        files: Files of text.
        folder: Where to make the folder for copies, which only its user may read; the system's if it is empty.
        owner: The folder is removed when it is gone.
    """
    broken = [place for place, file in enumerate(files) if not is_unicode(file)]
    if not broken:
        return list(files)
    try:
        private = tempfile.mkdtemp(prefix="dpcausal-", dir=folder or None)
    except OSError:
        raise TableError(
            problem="No folder can be made for a copy of the table in UTF-8",
            hint="name a folder that exists and that you may write to: Resources(spill=…).",
        ) from None
    weakref.finalize(owner, shutil.rmtree, private, ignore_errors=True)
    copies = {place: str(Path(private, f"{place}.csv")) for place in broken}
    for place, copy in copies.items():
        with open(copy, "wb", opener=_private) as written:
            written.writelines(_replaced(files[place]))
    return [copies.get(place, file) for place, file in enumerate(files)]


def is_unicode(file: str) -> bool:
    """Return whether a file of text is UTF-8 throughout."""
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    with _opened(file) as content:
        try:
            while chunk := content.read(_CHUNK):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def broken_lines(file: str) -> int:
    """Return how many lines have bytes that are not UTF-8. Only for whoever may see the file."""
    with _opened(file) as content:
        return sum("\ufffd" in line.decode("utf-8", "replace") and not _is_valid(line) for line in content)


def _is_valid(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _replaced(file: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with _opened(file) as content:
        while chunk := content.read(_CHUNK):
            yield decoder.decode(chunk).encode()
        yield decoder.decode(b"", final=True).encode()


def _opened(file: str) -> BinaryIO:
    return cast("BinaryIO", gzip.open(file, "rb")) if file.endswith(".gz") else Path(file).open("rb")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
