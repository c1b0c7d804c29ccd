"""Build and check the R package in `r/`, with its examples, tests and vignettes run on this checkout.

Run it where R and the packages of `r/DESCRIPTION` are installed: `python -m checks.r_package`. It is no part of the
gate, whose machines have no R; `tests/interop/test_r_package.py` runs the package's tests where R is there.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from checks.documents import ROOT, blocks

SOURCE = ROOT / "r"
PAGES = (SOURCE / "README.md", ROOT / "docs" / "r.md")
VIGNETTES = sorted(path.stem for path in (SOURCE / "vignettes").glob("*.Rmd"))
_STATUS = re.compile(r"^Status: .*$", re.MULTILINE)


def environment(library: Path | None = None) -> dict[str, str]:
    """Return the environment in which R uses this Python and this checkout, and must not skip a test."""
    path = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    return {
        **os.environ,
        "DPCAUSAL_PYTHON": sys.executable,
        "DPCAUSAL_REQUIRED": "1",
        "PYTHONPATH": path,
        "_R_CHECK_FORCE_SUGGESTS_": "true",
        # The clock of a machine without a network cannot be verified.
        "_R_CHECK_SYSTEM_CLOCK_": "false",
        **({"R_LIBS": str(library)} if library else {}),
    }


def run(words: list[str], folder: Path, *, seconds: int, library: Path | None = None) -> str:
    """Run a program in a folder; return what it printed, and raise if it failed."""
    done = subprocess.run(  # noqa: S603
        words,
        cwd=folder,
        env=environment(library),
        timeout=seconds,
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}\n{done.stdout}")
    return done.stdout


def install(library: Path) -> None:
    """Install the package into a library folder."""
    library.mkdir(exist_ok=True)
    run(["R", "CMD", "INSTALL", "--no-docs", f"--library={library}", str(SOURCE)], library, seconds=120)


def run_page(page: Path, folder: Path, library: Path) -> None:
    """Run the R code of a page, in order, in an empty folder."""
    code = "\n".join(block.body for block in blocks(page.read_text(encoding="utf-8")) if block.language == "r")
    script = folder / "page.R"
    script.write_text(code, encoding="utf-8")
    run(["Rscript", script.name], folder, seconds=120, library=library)


def build_and_check(folder: Path) -> str:
    """Build the package with its vignettes and check it; return the last line of the check."""
    run(["R", "CMD", "build", str(SOURCE)], folder, seconds=600)
    (archive,) = folder.glob("dpcausal_*.tar.gz")
    manual = [] if shutil.which("pdflatex") else ["--no-manual"]
    printed = run(["R", "CMD", "check", *manual, archive.name], folder, seconds=900)
    status = _STATUS.findall(printed)
    if not status or "WARNING" in status[-1] or "ERROR" in status[-1]:
        raise SystemExit(printed)
    return str(status[-1]) + (f" ({manual[0]}: no LaTeX)" if manual else "")


def rendered(folder: Path) -> list[Path]:
    """Return the vignettes' pages in a checked package; raise where one is missing or was not run."""
    pages = [folder / "dpcausal.Rcheck" / "dpcausal" / "doc" / f"{name}.html" for name in VIGNETTES]
    for page in pages:
        if not page.is_file() or "so the code below was not run" in page.read_text(encoding="utf-8"):
            raise SystemExit(f"expected {page.name} with its code run")
    return pages


def main() -> None:
    """Build and check the package and run its pages; with --out, copy the archive and the vignettes into a folder."""
    options = argparse.ArgumentParser(description=main.__doc__)
    options.add_argument("--out", type=Path, help="a folder for the archive and the vignettes' pages")
    out = options.parse_args().out
    if not shutil.which("R"):
        raise SystemExit(
            "expected R on the path\n\nHint: on Debian, apt-get install the packages that r/README.md names."
        )
    with TemporaryDirectory() as name:
        folder = Path(name)
        print(build_and_check(folder))
        pages = rendered(folder)
        print(f"Vignettes run: {', '.join(page.stem for page in pages)}")
        for page in PAGES:
            empty = folder / "pages" / page.relative_to(ROOT).with_suffix("")
            empty.mkdir(parents=True)
            run_page(page, empty, folder / "dpcausal.Rcheck")
            print(f"Code run: {page.relative_to(ROOT)}")
        if out:
            out.mkdir(parents=True, exist_ok=True)
            for path in (*folder.glob("dpcausal_*.tar.gz"), *pages):
                shutil.copy(path, out)
            print(f"Copied to {out}")


if __name__ == "__main__":
    main()
