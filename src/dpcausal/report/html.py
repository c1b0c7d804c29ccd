"""Renders a report as one self-contained HTML page. All text is treated as untrusted and escaped."""

from base64 import b64encode
from collections.abc import Sequence

from dpcausal.page.html_page import html_page, html_text
from dpcausal.page.style import page_header, page_style
from dpcausal.report.figures import Figures
from dpcausal.report.section import InlineFigure, Picture, ReportInputs, Section, Table

_STYLE = """
nav ol { columns: 2; padding-left: 2.4rem; margin: 0.5rem 0; list-style: none; }
dl { display: grid; grid-template-columns: 12rem 1fr; margin: 0.5rem 0; }
dt, dd { padding: 0.25rem 0; border-bottom: 1px solid var(--rule); margin: 0; }
dt { font-weight: 600; padding-right: 1rem; }
.methods p { background: var(--card); padding: 0.7rem 1rem; margin: 0.3rem 0; user-select: all; }
#appendix { border-top: 3px solid var(--accent); margin-top: 2.5rem; padding-top: 0.5rem; font-size: 0.95rem; }
#appendix > h2 { font-size: 1.4rem; margin: 0.8rem 0; }
h3 { font-size: 1.05rem; line-height: 1.3; margin: 1.8rem 0 0.4rem; color: var(--accent); }
table { margin: 0.9rem 0; }
caption { text-align: left; font-weight: 600; padding-bottom: 0.3rem; }
dd, li, td:last-child { overflow-wrap: anywhere; }
#audit_trail td:nth-child(3) { white-space: nowrap; }
.wide { overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.7rem 0.25rem 0;
  border-bottom: 1px solid var(--rule); }
thead th { border-bottom: 1px solid var(--ink); }
figcaption.title { font-weight: 600; }
figure > img { max-width: 100%; height: auto; background: #fff; padding: 0.4rem; }
@media (max-width: 40rem) {
  nav ol { columns: 1; }
  dl { grid-template-columns: 1fr; }
  dt { border: 0; padding-bottom: 0; }
  dd { padding-top: 0; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table, tbody, tr, td, caption { display: block; }
  tr { border-bottom: 1px solid var(--rule); padding: 0.3rem 0; }
  td { border: 0; padding: 0.1rem 0; overflow-wrap: anywhere; }
  td:empty { display: none; }
  td::before { content: attr(data-label) ": "; font-weight: 600; }
  td[data-label=""] { font-weight: 600; }
  td[data-label=""]::before { content: none; }
}
@page { size: A4; margin: 14mm 15mm;
  @bottom-right { content: counter(page) " / " counter(pages); font: 7.5pt system-ui, sans-serif; color: #55605f; } }
@media print {
  nav { display: none; }
  main { line-height: 1.38; }
  #methods { break-inside: avoid; }
  #methods p { font-size: 8.6pt; }
  h2 { margin: 0.9rem 0 0.3rem; }
  div.verdict p { font-size: 12.5pt; }
  body::before { content: ""; float: left; width: 0; height: 268mm; }  /* the appendix begins below the first page */
  #appendix { clear: left; font-size: 8.4pt; line-height: 1.32; border: 0; margin: 0; padding: 0; }
  #appendix > h2 { font-size: 12pt; margin: 0 0 0.2rem; }
  #appendix p, #appendix ul { margin: 0.2rem 0; }
  h3 { font-size: 9.5pt; margin: 0.7rem 0 0.2rem; }
  dl { grid-template-columns: 13rem 1fr; margin: 0.2rem 0; }
  #guidelines .tables { columns: 2; }
  #guidelines .wide:first-child table { margin-top: 0; }
  dt, dd, th, td { padding-top: 0.08rem; padding-bottom: 0.08rem; }
  table { font-size: 8.4pt; margin: 0.35rem 0; }
  caption { padding-bottom: 0.1rem; }
  tr, dt, dd { break-inside: avoid; }
  dl { break-inside: avoid; }
  ul.quiet { break-before: avoid; }
  #guidelines > p { break-after: avoid; }
  p, li { orphans: 3; widows: 3; }
  .wide { overflow-x: visible; break-inside: avoid; }
  figure { margin: 0.5rem 0; }
  #appendix figure { display: inline-block; width: 49%; vertical-align: top; }
  #appendix figure > img { max-height: 6.5cm; }
  #audit_trail td:last-child { font-size: 6.4pt; }
}
"""
# Defence in depth: even with an escape missing, nothing could run and nothing could be fetched.
_ALLOWED = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def render_page(report: ReportInputs, sections: Sequence[Section], figures: Figures, *, missing: bool) -> str:
    """Render a page.

    Args:
        missing: Whether figures are missing because matplotlib is not installed; the page says what to install.
    """
    subtitle = f"{report.study.name}. {report.date.isoformat()}" if report.study else report.date.isoformat()
    first_page = [section for section in sections if not section.number]
    appendix = [section for section in sections if section.number]
    links = "".join(
        f'<li><a href="#{section.key}">A{section.number}. {html_text(section.title)}</a></li>' for section in appendix
    )
    install = "Figures are missing: they need matplotlib. Install it with pip install 'dpcausal[plots]'."
    page = f"""{page_header(report.title, subtitle)}
<main>
<div class="verdict"><strong>{html_text(report.verdict.heading)}</strong><p>{html_text(report.verdict.text)}</p></div>
{"".join(_first_page(section, figures) for section in first_page)}
<div id="appendix">
<h2>Appendix</h2>
<nav aria-label="Appendix"><ol>{links}</ol></nav>
{f'<p class="quiet">{html_text(install)}</p>' if missing else ""}
{"".join(_section(section, figures) for section in appendix)}
</div>
</main>"""
    return html_page(report.title, page, style=page_style(_STYLE), allowed=_ALLOWED)


def _first_page(section: Section, figures: Figures) -> str:
    """Return a section of the first page. The verdict stands above it, and is not repeated."""
    pictures = "".join(map(_figure, figures.get(section.key, ())))
    texts = "" if section.key == "summary" else _paragraphs(section)
    title = f'<h2 id="{section.key}-title">{html_text(section.title)}</h2>'
    return (
        f'<section id="{section.key}" class="{section.key}" aria-labelledby="{section.key}-title">'
        f"{pictures}{title}{texts}{_items(section)}</section>\n"
    )


def _section(section: Section, figures: Figures) -> str:
    notes = "".join(f"<li>{html_text(note)}</li>" for note in section.notes)
    parts = [
        f'<section id="{section.key}" aria-labelledby="{section.key}-title">',
        f'<h3 id="{section.key}-title">A{section.number}. {html_text(section.title)}</h3>',
        _items(section),
        _paragraphs(section),
        *map(_figure, figures.get(section.key, ())),
        f'<div class="tables">{"".join(map(_table, section.tables))}</div>' if section.tables else "",
        f'<ul class="quiet">{notes}</ul>' if notes else "",
        "</section>",
    ]
    return "\n".join(filter(None, parts))


def _items(section: Section) -> str:
    lines = "".join(f"<dt>{html_text(label)}</dt><dd>{html_text(words)}</dd>\n" for label, words in section.items)
    return f"<dl>\n{lines}</dl>" if lines else ""


def _paragraphs(section: Section) -> str:
    return "".join(f"<p>{html_text(paragraph)}</p>" for paragraph in section.paragraphs)


def _figure(figure: InlineFigure | Picture) -> str:
    if isinstance(figure, Picture):
        return _picture(figure)
    return f"<figure>{figure.svg}<figcaption>{figure.key}</figcaption></figure>"


def _picture(picture: Picture) -> str:
    data = f"data:{picture.kind};base64,{b64encode(picture.image).decode()}"
    image = f'<img src="{data}" alt="{html_text(picture.alt)}">'
    return f'<figure><figcaption class="title">{html_text(picture.title)}</figcaption>{image}</figure>'


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{html_text(label)}</th>' for label in table.head)
    lines = "".join(
        "<tr>"
        + "".join(
            f'<td data-label="{html_text(label)}">{html_text(words)}</td>'
            for label, words in zip(table.head, line, strict=True)
        )
        + "</tr>\n"
        for line in table.lines
    )
    caption = f"<caption>{html_text(table.caption)}</caption>"
    return f'<div class="wide"><table>{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{lines}</tbody></table></div>'
