"""Flesch reading ease of every page: `python -m checks.readability`.

Only prose is measured: paragraphs and list items, without code, tables, headings, formulas and HTML.
A name in code counts as one word of two syllables, a number, a formula or a single letter not at all.
Reading ease is 206.835 minus 1.015 times the words per sentence minus 84.6 times the syllables per word.
Higher is easier. Syllables are estimated from letters, so compare pages and versions, not tools.

    python -m checks.readability                     every page, hardest first
    python -m checks.readability --since COMMIT      beside the same pages at a commit
    python -m checks.readability --since COMMIT --json FILE
"""

import argparse
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs")
LONG = 25
"""Words beyond which a sentence is long."""

LEFT_OUT = re.compile(
    r"\A---\n.*?^---$"  # front matter
    r"|^( *)(```+|~~~+).*?^\1\2`*$"  # code
    r"|<!--.*?-->|<(style|svg|figure|table|div|details)\b.*?</\3>"
    r"|^ *\|[^\n]*$"  # tables
    r"|^#+ [^\n]*$"  # headings
    r"|^ *:::[^\n]*$|^ *\[[^\]\n]+\]:[^\n]*$"  # names of the reference, link targets
    r"|\$\$.*?\$\$|\\\[.*?\\\]",
    re.MULTILINE | re.DOTALL,
)
INLINE = [
    (re.compile(r"!\[[^\]]*\]\([^)]*\)"), " "),
    (re.compile(r"\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"`[^`]+`"), " symbol "),
    (re.compile(r"\\\(.*?\\\)|\$[^$]+\$"), " "),
    (re.compile(r"<[^>\n]+>|&\w+;"), " "),
    (re.compile(r"https?://\S+"), " symbol "),
    (re.compile(r"\be\.g\."), "eg"),
    (re.compile(r"\b(et al|vs|Dr|cf)\."), r"\1"),
    (re.compile(r"(?<=\w)\*+|\*+(?=\w)|\*\*"), ""),
]
PART = re.compile(r"\n\s*\n|^\s*(?:[-*+]|\d+\.)\s+|^>\s*|^\s*!!!.*$", re.MULTILINE)
SENTENCE = re.compile(r"""(?<=[.!?])["')\]]*\s+""")
WORD = re.compile(r"[^\W\d_][^\W_]*(?:['’][^\W\d_]+)?")  # noqa: RUF001 (an apostrophe as printed)


@dataclass(frozen=True)
class Score:
    """How easily a page reads."""

    words: int
    words_per_sentence: float
    long_sentences: float  # share of sentences of more than 25 words
    ease: float


def sentences(text: str) -> list[list[str]]:
    """Return the words of each sentence of a page's prose."""
    prose = LEFT_OUT.sub("\n\n", text)
    for pattern, instead in INLINE:
        prose = pattern.sub(instead, prose)
    found = (WORD.findall(sentence) for part in PART.split(prose) for sentence in SENTENCE.split(part))
    words = ([word for word in sentence if len(word) > 1 or word in "aAI"] for sentence in found)
    return [sentence for sentence in words if sentence]


def syllables(word: str) -> int:
    """Return the estimated number of syllables of a word: its groups of vowels, without a silent e."""
    spoken = re.sub(r"(?:[^laeiouycsxzg]es|[^aeiouytd]ed|[^laeiouy]e)$", "", word.lower())
    groups = re.findall(r"[aeiouyà-ÿ]+", spoken)
    apart = re.findall(
        r"(?<![tscgx])i[ao]|tio$|(?<![qg])ua|(?<!p)eo(?!u)|creat|scienc|[aeiouy]ing$", spoken
    )  # two vowels, two syllables
    return max(1, len(groups) + len(apart))


def score(text: str) -> Score | None:
    """Return the score of a page, or None where it has less than fifty words of prose."""
    found = sentences(text)
    words = [word for sentence in found for word in sentence]
    if len(words) < 50:
        return None
    length = len(words) / len(found)
    ease = 206.835 - 1.015 * length - 84.6 * sum(map(syllables, words)) / len(words)
    long = sum(len(sentence) > LONG for sentence in found) / len(found)
    return Score(len(words), round(length, 1), round(long, 2), round(ease, 1))


def prose_of(name: str, text: str) -> str:
    """Return the Markdown of a page; of a notebook that of its cells of text."""
    if not name.endswith(".ipynb"):
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
    return "\n\n".join("".join(cell["source"]) for cell in cells)


def measure(commit: str = "") -> dict[str, Score]:
    """Return the score of every page with prose, in this folder or at a commit."""
    listed = git("ls-tree", "-r", "--name-only", commit, *PAGES) if commit else ""
    here = [path for page in PAGES for path in [ROOT / page, *(ROOT / page).rglob("*")] if path.is_file()]
    names = listed.splitlines() if commit else [path.relative_to(ROOT).as_posix() for path in here]
    scores = {}
    for name in sorted(name for name in names if name.endswith((".md", ".ipynb"))):
        text = git("show", f"{commit}:{name}") if commit else (ROOT / name).read_text(encoding="utf-8")
        if measured := score(prose_of(name, text)):
            scores[name] = measured
    return scores


def git(*words: str) -> str:
    """Return the output of a git command in the checkout."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S603, S607


def main() -> None:
    """Print a table of all pages, hardest first, and the medians; write it as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--since", metavar="COMMIT", default="", help="a commit to compare with")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the scores")
    options = parser.parse_args()
    now, then = measure(), measure(options.since) if options.since else {}
    print("before   long       now   long   words  page")
    for name, page in sorted(now.items(), key=lambda item: item[1].ease):
        before = f"{then[name].ease:6.1f} {then[name].long_sentences:6.0%}" if name in then else " " * 13
        print(f"{before} {page.ease:9.1f} {page.long_sentences:6.0%} {page.words:7}  {name}")
    for words, scores in (("before", then), ("now", now)):
        if scores:
            ease, long = (median(getattr(page, of) for page in scores.values()) for of in ("ease", "long_sentences"))
            print(f"{words}: {len(scores)} pages, median ease {ease:.1f}, long sentences {long:.0%}")
    if options.json:
        rows = {
            name: {when: vars(scores[name]) for when, scores in (("before", then), ("now", now)) if name in scores}
            for name in sorted({*then, *now})
        }
        options.json.write_text(json.dumps({"before": options.since, "pages": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
