"""Files with blanks for a person to fill in, and the check that none is left."""

from pathlib import Path

import tomli_w

from dpcausal.errors import StudyError
from dpcausal.utils.plain_text import lines_in

BLANK = "<fill in>"
"""The placeholder where a person must decide. A file that still holds one is incomplete."""


def quoted(text: str) -> str:
    """Return a text as TOML writes it, on one line."""
    return tomli_w.dumps({"text": text}).strip().removeprefix("text = ")


def check_filled_in(text: str, what: str = "a study") -> None:
    """Raise if the text of a study, or of something else, still holds blanks, and say where.

    Example:
        >>> check_filled_in('name = "<fill in>"')
        Traceback (most recent call last):
        dpcausal.errors.StudyError: A study is not filled in yet; 1 left blank: name in line 1.
        ...
    """
    blanks, section = [], ""
    for place, line in enumerate(lines_in(text), start=1):
        if line.startswith("["):
            section = f"{line.partition('#')[0].strip()} "
        elif f'"{BLANK}"' in line.partition("#")[0]:
            blanks.append(f"{section}{line.partition('=')[0].strip()} in line {place}")
    if blanks:
        raise StudyError(
            problem=f"{what[:1].upper() + what[1:]} is not filled in yet; {len(blanks)} left blank: "
            f"{', '.join(blanks)}",
            hint=f'replace every "{BLANK}", quotation marks included; the comments explain each.',
        )


def write_new(file: Path, text: str) -> None:
    """Write a file that must not be there yet."""
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        raise StudyError(problem=f"{file} exists already", hint="give another name with --out.") from None
    except OSError as error:
        raise StudyError(
            problem=f"{file} cannot be written ({type(error).__name__})", hint="check its folder."
        ) from None
