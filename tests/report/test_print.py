"""The report on paper: at most four pages, the first of them complete, and no heading at the bottom of a page."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.report.examples import EXAMPLES
from tests.report.test_browser import CHROMIUM

GHOSTSCRIPT = shutil.which("gs")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium or chrome on this machine to print the page with"),
    pytest.mark.skipif(GHOSTSCRIPT is None, reason="no ghostscript on this machine to read the pages with"),
]


def printed(html: str, folder: Path) -> list[str]:
    """Print a page, and return the text of each sheet."""
    path, out = folder / "page.html", folder / "page.pdf"
    path.write_text(html, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", f"--print-to-pdf={out}"]
    subprocess.run(  # noqa: S603 (our own page)
        [str(CHROMIUM), *options, f"--user-data-dir={folder / 'profile'}", path.as_uri()],
        capture_output=True,
        timeout=120,
        check=True,
    )
    read = [str(GHOSTSCRIPT), "-q", "-sDEVICE=txtwrite", f"-sOutputFile={folder / 'sheet-%d.txt'}", "-dBATCH"]
    subprocess.run([*read, "-dNOPAUSE", str(out)], capture_output=True, timeout=120, check=True)  # noqa: S603
    sheets = sorted(folder.glob("sheet-*.txt"), key=lambda sheet: int(re.findall(r"\d+", sheet.name)[0]))
    return [sheet.read_text(encoding="utf-8", errors="replace") for sheet in sheets]


def without_numbers(sheets: list[str]) -> list[str]:
    """Return the text of sheets without the number of each at its foot."""
    lines = [[line for line in sheet.splitlines() if line.strip()] for sheet in sheets]
    assert [line[-1].strip() for line in lines] == [f"{at} / {len(sheets)}" for at in range(1, len(sheets) + 1)]
    return ["\n".join(line[:-1]) for line in lines]


def orphans(sheets: list[str], headings: list[str]) -> list[str]:
    """Return the headings of sections and of tables of which nothing but words is at the bottom of a sheet."""
    words = [set(heading.split()) for heading in headings]
    ends = [" ".join([line for line in sheet.splitlines() if line.strip()][-2:]).split() for sheet in sheets]
    last = [[line for line in sheet.splitlines() if line.strip()][-1].split() for sheet in sheets]
    return [" ".join(end) for end in (*ends, *last) if any(set(end) <= heading for heading in words)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_report_prints_on_four_sheets_without_orphaned_headings(name: str, tmp_path: Path) -> None:
    report = EXAMPLES[name]()
    sheets = without_numbers(printed(report.to_html(), tmp_path))
    assert 3 <= len(sheets) <= 4
    assert "Appendix" not in sheets[0]  # the first page holds verdict, picture, reasons and methods, and nothing else
    assert "Appendix" in sheets[1]
    headings = [f"A{section.number}. {section.title}" for section in report.sections if section.number]
    headings += [" ".join((table.caption, *table.head)) for section in report.sections for table in section.tables]
    assert orphans(sheets, headings) == []


def test_appendix_follows_a_first_page_that_is_too_long(tmp_path: Path) -> None:
    html = EXAMPLES["trial"]().to_html().replace("<dl>", "<dl>" + "<dt>more</dt><dd>words</dd>" * 20, 1)
    sheets = without_numbers(printed(html, tmp_path))
    assert "Methods paragraph" not in sheets[0]  # it is kept whole
    assert "Methods paragraph" in sheets[1]
    assert "Appendix" in sheets[1]


def test_orphaned_heading_is_caught(tmp_path: Path) -> None:
    report = EXAMPLES["trial"]()
    broken = report.to_html().replace("</style>", "@media print { #result dl { break-before: page; } }</style>")
    sheets = without_numbers(printed(broken.replace("break-after: avoid", "break-after: auto"), tmp_path))
    assert "A2. Result" in orphans(sheets, ["A2. Result"])
    assert orphans(["…\nReceipts\nquery  date", "a  b"], ["Receipts query date"]) == [
        "Receipts query date",
        "query date",
    ]
