"""The R package: its tests run the real Python package, where R is installed."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import dpcausal
from checks.r_package import PAGES, SOURCE, VIGNETTES, environment, install

NEEDED = ("generics", "jsonlite", "processx", "testthat", "tibble")


def missing() -> str:
    """Return why the package cannot be tested here; empty where it can."""
    if not shutil.which("Rscript"):
        return "no Rscript on the path"
    asked = f"cat(setdiff(c({', '.join(map(repr, NEEDED))}), rownames(installed.packages())))"
    done = subprocess.run(["Rscript", "-e", asked], check=False, capture_output=True, text=True)  # noqa: S603, S607
    return f"no R package {done.stdout.strip()}" if done.stdout.strip() else ""


@pytest.mark.slow
@pytest.mark.timeout(600)  # where it is not alone on the machine
def test_testthat_passes_without_a_skip(tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    library = tmp_path / "library"
    install(library)
    code = (
        f'done <- as.data.frame(testthat::test_dir("{SOURCE / "tests" / "testthat"}", package = "dpcausal", '
        'load_package = "installed", reporter = "summary", stop_on_failure = TRUE)); '
        'cat("tests", nrow(done), "skipped", sum(done$skipped), "\\n")'
    )
    done = subprocess.run(  # noqa: S603
        ["Rscript", "-e", code],  # noqa: S607
        cwd=tmp_path,
        env=environment(library),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.search(r"tests (\d+) skipped (\d+)", done.stdout)
    assert counts, done.stdout
    assert int(counts[1]) >= 20
    assert int(counts[2]) == 0, done.stdout


def test_version_is_that_of_the_python_package() -> None:
    description = (SOURCE / "DESCRIPTION").read_text(encoding="utf-8")
    assert f"Version: {dpcausal.__version__}\n" in description


def test_every_vignette_is_named_in_the_readme_and_the_docs() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert [name for name in VIGNETTES if name not in text] == []
