"""The translations of pages: `python -m checks.translations [--write]`.

Finds every text that the package passes to a `Language` or marks with `message`, and checks that each catalogue has all
of them, none more, each with the same names in braces, and that the compiled catalogue is current. With --write it adds
new texts to the catalogues, removes old ones, and compiles them; a person then translates the new ones.
"""

import ast
import string
import struct
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from dpcausal.page.language import DOMAIN, LANGUAGES, LOCALE

SOURCE = Path(__file__).parents[1] / "src" / "dpcausal"
MARKS = ("say", "message")
UNWANTED = ("-Date:", "Generated-By", "Msgid-Bugs", "Last-Translator", "Project-Id")
"""Header lines that say nothing, or change at every run."""
CHARSET = "Content-Type: text/plain; charset=UTF-8\n"
HEADER = "# Texts of dpcausal's pages. Written by checks/translations.py; people translate.\n"


def texts(source: Path = SOURCE) -> dict[str, str]:
    """Return every text to translate, with the first file that has it."""
    found: dict[str, str] = {}
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _name(node.func) in MARKS and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    found.setdefault(first.value, path.relative_to(source).as_posix())
    return found


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def names(text: str) -> set[str]:
    """Return the names in braces."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def files(code: str, locale: Path = LOCALE) -> tuple[Path, Path]:
    """Return the catalogue of a language, and the compiled one."""
    folder = locale / code / "LC_MESSAGES"
    return folder / f"{DOMAIN}.po", folder / f"{DOMAIN}.mo"


def read(code: str, locale: Path = LOCALE) -> Catalog:
    """Read a catalogue; an empty one where there is none yet."""
    path, _ = files(code, locale)
    if not path.exists():
        return Catalog(locale=code)
    with path.open("rb") as file:
        return read_po(file, locale=code)


def compiled(catalogue: Catalog) -> bytes:
    """Return a catalogue as gettext reads it, the same to the byte for the same texts.

    The format: magic number, version, number of texts, where the two tables of lengths and places start, the size of a
    hash table (none), the tables, and the texts, each with a zero byte after it.
    """
    known = {str(each.id): str(each.string) for each in catalogue if each.id and each.string}
    pairs = sorted((text.encode(), words.encode()) for text, words in (known | {"": CHARSET}).items())
    count, start = len(pairs), 28
    place, tables, texts = start + 16 * count, b"", b""
    for side in (0, 1):
        for pair in pairs:
            tables += struct.pack("<II", len(pair[side]), place)
            texts += pair[side] + b"\0"
            place += len(pair[side]) + 1
    return struct.pack("<7I", 0x950412DE, 0, count, start, start + 8 * count, 0, start + 16 * count) + tables + texts


def faults(code: str, wanted: dict[str, str], locale: Path = LOCALE) -> Iterator[str]:
    """Yield what is wrong with a catalogue."""
    catalogue = read(code, locale)
    has = {str(each.id): str(each.string) for each in catalogue if each.id}
    for text, file in wanted.items():
        if not has.get(text):
            yield f"{code}: not translated: {text!r} ({file})"
        elif names(has[text]) != names(text):
            yield f"{code}: other names in braces: {text!r}"
    yield from (f"{code}: no longer used: {text!r}" for text in has if text not in wanted)
    _, binary = files(code, locale)
    if not binary.exists() or binary.read_bytes() != compiled(catalogue):
        yield f"{code}: the compiled catalogue is not current: run python -m checks.translations --write"


def write(code: str, wanted: dict[str, str], locale: Path = LOCALE) -> None:
    """Write a catalogue with exactly the wanted texts, and compile it."""
    old = {str(each.id): str(each.string) for each in read(code, locale) if each.id}
    catalogue = Catalog(
        locale=code, header_comment=HEADER, project=DOMAIN, last_translator="", language_team=code, fuzzy=False
    )
    for text, file in wanted.items():
        catalogue.add(text, old.get(text, ""), locations=[(file, 0)])
    path, binary = files(code, locale)
    path.parent.mkdir(parents=True, exist_ok=True)
    output = BytesIO()
    write_po(output, catalogue, width=110, omit_header=False, include_lineno=False, sort_by_file=True)
    lines = output.getvalue().decode().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not any(each in line for each in UNWANTED)), "utf-8")
    binary.write_bytes(compiled(read(code, locale)))


def main() -> None:
    """Check or write all catalogues."""
    wanted = texts()
    translated = [code for code in LANGUAGES if code != "en"]
    if "--write" in sys.argv:
        for code in translated:
            write(code, wanted)
    found = [fault for code in translated for fault in faults(code, wanted)]
    print("\n".join(found) or f"translations: {len(wanted)} texts in {', '.join(translated)}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
