"""Stored results: what gave each of them, when, and whether the code that it measures has changed since.

`benchmarks/results/evidence.json` has an entry for each stored result: the command, the day, the version, the digest of
the result's own file, and that of the import closure of the command's module as it was when the command began. Where
that closure is another one now, the result is stale. Any change of a file counts but for comments, docstrings and empty
lines, which decide no figure; libraries from elsewhere do not count. `sources.json` beside it has the digest of each
file at that time, so that it can be said which files changed. Pages of the documentation say so where they show a
result, by themselves (`checks.mkdocs_hooks`).

`python -m checks.evidence` lists all results, those that need something done first. `--run NAME` runs the command of a
result and enters what it gave, with its processor time. Of a result that is put together by hand, `--code NAME` prints
the digest before the commands are run, and `--measured NAME DIGEST` enters it after. The entry of a new result, with
its commands and pages, is written by hand before.
"""

import argparse
import hashlib
import io
import json
import resource
import shlex
import subprocess
import sys
import sysconfig
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path

import dpcausal
from checks.closure import ROOT, WRITTEN, Sources

FILE = ROOT / WRITTEN / "evidence.json"
SOURCES = "sources.json"
NOT_RESULTS = {FILE.name, SOURCES, "ordinary_truths.json"}
"""What is among the results and is none: these records, and true effects that benchmarks keep for themselves."""

MOST_NAMED = 3
"""So many changed files are named on a page; of more, it has their number."""

_MEANING = """\
    These commands gave the figures on this page. Where any code that a command runs has changed since, it says so; that
    need not mean other figures. The command measures them again."""


@dataclass(frozen=True)
class Evidence:
    """What is known of a stored result.

    Attributes:
        commands: What gave it.
        pages: The pages of the documentation that show it.
        date: The day on which it was measured, of UTC; of earlier ones the day on which it was stored.
        version: The version of the package that was measured.
        code: The digest of all that the commands' modules import, as it was when they began; empty where that is not
            known.
        result: The digest of the result's file.
        minutes: The processor time that it took; None where it was not measured.
        sources: The name of the record of all files as they were; empty where there is none.
    """

    commands: tuple[str, ...]
    pages: tuple[str, ...]
    date: str
    version: str
    code: str
    result: str
    minutes: float | None = None
    sources: str = ""

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that the commands run: of `python -m benchmarks.pooling` and of `dpcausal audit`."""
        words = [command.split() for command in self.commands]
        return tuple(each[2] if each[0] == "python" else ".".join(each[:2]) for each in words)


def stored() -> dict[str, Evidence]:
    """Return what is known of each result, by its name."""
    known = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: Evidence(**each | {"commands": tuple(each["commands"]), "pages": tuple(each["pages"])})
        for name, each in known.items()
    }


def write(known: Mapping[str, Evidence], files: Mapping[str, str] | None = None) -> None:
    """Write down what is known, and files as they were when one of the results was measured."""
    plain = {name: asdict(each) for name, each in sorted(known.items())}
    FILE.write_text(f"{json.dumps(plain, indent=1)}\n", encoding="utf-8")
    records = stored_sources() | ({name_of(files): dict(files)} if files else {})
    used = {name: records[name] for name in sorted({each.sources for each in known.values()} & records.keys())}
    FILE.with_name(SOURCES).write_text(f"{json.dumps(used, indent=0)}\n", encoding="utf-8")


def stored_sources() -> dict[str, dict[str, str]]:
    """Return the digest of each file, by the name of its record."""
    file = FILE.with_name(SOURCES)
    records: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return records


def name_of(files: Mapping[str, str]) -> str:
    """Return the name of a record of files."""
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:8]


def results() -> dict[str, Path]:
    """Return the files of all stored results, by name."""
    return {file.stem: file for file in sorted(FILE.parent.glob("*.json")) if file.name not in NOT_RESULTS}


def faults(known: Mapping[str, Evidence]) -> dict[str, str]:
    """Return what is wrong, by name: a file without an entry, or one that changed since it was entered."""
    files = results()
    found = {each.name: "is no result" for each in FILE.parent.iterdir() if each.name not in NOT_RESULTS}
    found = {name: words for name, words in found.items() if not (name.endswith(".json") and Path(name).stem in files)}
    found |= dict.fromkeys(files.keys() - known.keys(), "has no entry")
    found |= dict.fromkeys(known.keys() - files.keys(), "has no file")
    for name in files.keys() & known.keys():
        if known[name].result != digest_of_result(files[name]):
            found[name] = "changed since it was entered"
    return found


def digest_of_result(file: Path) -> str:
    """Return the digest of a result's file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def digest_of_code(modules: Iterable[str], sources: Sources) -> str:
    """Return the digest of all that some modules import, without what decides no figure."""
    digest = hashlib.sha256()
    for file in needed(modules, sources):
        digest.update(f"{file} ".encode() + content(file, sources))
    return digest.hexdigest()[:16]


def files_of(known: Mapping[str, Evidence], sources: Sources) -> dict[str, str]:
    """Return the digest of each file that any result rests on, without what decides no figure."""
    files = needed((module for each in known.values() for module in each.modules), sources)
    return {str(file): hashlib.sha256(content(file, sources)).hexdigest()[:8] for file in files}


def needed(modules: Iterable[str], sources: Sources) -> list[Path]:
    """Return all files that some modules import."""
    mains = [f"{name}.__main__" if f"{name}.__main__" in sources.modules else name for name in modules]
    return sorted(sources.needed(*(sources.modules[name] for name in mains)))


def content(file: Path, sources: Sources) -> bytes:
    """Return what a file has, without what decides no figure."""
    found = (sources.root / file).read_bytes()
    return essence(found.decode()).encode() if file.suffix == ".py" else found


@cache
def essence(text: str) -> str:
    """Return Python without comments, docstrings and empty lines."""
    lines, gone, begins = dict(enumerate(text.split("\n"), 1)), [], True
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for token, following in pairwise(tokens):
        alone = begins and token.type == tokenize.STRING and following.type == tokenize.NEWLINE
        if alone or token.type in {tokenize.COMMENT, tokenize.NL}:
            gone.append(token)
        elif token.type not in {tokenize.INDENT, tokenize.DEDENT}:
            begins = token.type == tokenize.NEWLINE
    for token in reversed(gone):
        (first, start), (last, end) = token.start, token.end
        lines[first] = (lines[first][:start] + lines[last][end:]).rstrip()
        for row in range(first, last + 1):
            if row > first or not lines[row]:
                del lines[row]
    return "\n".join(lines.values())


def stale(known: Mapping[str, Evidence], sources: Sources) -> dict[str, str]:
    """Return what changed in the code of each result whose code has changed since, as words; of others nothing."""
    now = {modules: digest_of_code(modules, sources) for modules in {each.modules for each in known.values()}}
    old = {name: each for name, each in known.items() if each.code != now[each.modules]}
    records = stored_sources()
    files = files_of(old, sources) if records else {}
    return {name: _changed(each, records.get(each.sources, {}), files, sources) for name, each in old.items()}


def _changed(each: Evidence, then: Mapping[str, str], now: Mapping[str, str], sources: Sources) -> str:
    if not then:
        return "changed since"
    files = [str(file) for file in needed(each.modules, sources)]
    changed = [file for file in files if then.get(file) != now[file]]
    names = f" ({', '.join(f'`{file}`' for file in changed)})" if len(changed) <= MOST_NAMED else ""
    return f"{len(changed)} of {len(files)} files changed since{names}"


def run(name: str, each: Evidence) -> None:
    """Run the command of a result, and store what it prints where it does not store that itself."""
    (command,) = each.commands
    words = shlex.split(command.replace(" --data FOLDER", ""))  # that is DPCAUSAL_DATA
    words[0] = sys.executable if words[0] == "python" else str(Path(sysconfig.get_path("scripts"), words[0]))
    prints = "--json" in words and "--publish" not in words
    done = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE if prints else None)  # noqa: S603
    if prints:
        results()[name].write_bytes(done.stdout)


def measured(known: Mapping[str, Evidence], name: str, code: str, day: date) -> dict[str, Evidence]:
    """Return what is known once a result was measured on a day, with code of this digest."""
    result, version = digest_of_result(results()[name]), dpcausal.__version__
    new = Evidence(known[name].commands, known[name].pages, day.isoformat(), version, code, result)
    return {**known, name: new}


def note(page: str, known: Mapping[str, Evidence], old: Mapping[str, str]) -> str:
    """Return what a page says about its results, as Markdown; nothing where it shows none."""
    shown = _shown(page, known)
    if not shown:
        return ""
    lines = [
        f"    - {_day(each.date)}, version {each.version}, {old.get(name, 'not changed since')}: "
        + ", ".join(f"`{command}`" for command in each.commands)
        for name, each in sorted(shown.items(), key=lambda item: item[1].date)
    ]
    return "\n".join([f'??? info "{title(page, known, old)}"', "", _MEANING, "", *lines, ""])


def title(page: str, known: Mapping[str, Evidence], old: Mapping[str, str]) -> str:
    """Return the title of that note: when results were measured, and whether code has changed since."""
    shown = _shown(page, known)
    if not shown:
        return ""
    days = sorted({each.date for each in shown.values()})
    count = len(old.keys() & shown.keys())
    since = {0: "the code is still the same", len(shown): "code has changed since"}
    return f"Measured {_days(days)}; " + since.get(count, f"code has changed since for {count} of {len(shown)} results")


def _shown(page: str, known: Mapping[str, Evidence]) -> dict[str, Evidence]:
    return {name: each for name, each in known.items() if page in each.pages}


def _days(days: Sequence[str]) -> str:
    return f"on {_day(days[0])}" if len(days) == 1 else f"from {_day(days[0])} to {_day(days[-1])}"


def _day(day: str) -> str:
    return f"{date.fromisoformat(day):%-d %B %Y}"


def main(words: Sequence[str] | None = None) -> None:
    """List the results, or enter one that is measured."""
    parser = argparse.ArgumentParser(prog="python -m checks.evidence", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--run", metavar="NAME", help="run the command of a result, and enter it")
    parser.add_argument("--code", metavar="NAME", help="print the digest of the code that a result measures")
    parser.add_argument("--measured", nargs=2, metavar=("NAME", "DIGEST"), help="enter a result of code of this digest")
    chosen = parser.parse_args(words)
    known, sources = stored(), Sources()
    named = chosen.run or chosen.code or (chosen.measured or [None])[0]
    if named and not (named in known and named in results()):
        parser.error(f"{named} is no stored result: write its file, and its commands and pages into {FILE.name} first")
    today = datetime.now(UTC).date()
    if chosen.code:
        print(digest_of_code(known[named].modules, sources))
        return
    if chosen.measured:
        known = measured(known, named, chosen.measured[1], today)
        write(known)
    if chosen.run:
        if len(known[named].commands) > 1:
            parser.error(f"{named} is put together of several commands: use --code and --measured")
        code, files, before = digest_of_code(known[named].modules, sources), files_of(known, sources), _seconds()
        run(named, known[named])
        if digest_of_code(known[named].modules, Sources()) != code:
            parser.error(f"the code changed while {named} was measured: run it again")
        known = measured(known, named, code, today)
        known[named] = replace(known[named], minutes=round((_seconds() - before) / 60, 1), sources=name_of(files))
        write(known, files)
    wrong, old = faults(known), stale(known, sources)
    for name, fault in sorted(wrong.items()):
        print(f"{'WRONG':<8} {name} {fault}")
    for name, each in sorted(known.items(), key=lambda item: (item[0] not in old, item[1].date, item[0])):
        minutes = "" if each.minutes is None else f"{each.minutes:g}"
        print(f"{'stale' if name in old else 'current':<8} {each.date} {minutes:>6}  {name:<32} {each.commands[0]}")
    print(f"{len(old)} of {len(known)} results are stale")


def _seconds() -> float:
    """Return the processor time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
