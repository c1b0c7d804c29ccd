"""Renders sections as one self-contained HTML page. All text is treated as untrusted and escaped."""

from base64 import b64encode
from collections.abc import Mapping, Sequence

from dpcausal.html_page import html_page, html_text
from dpcausal.report.section import Picture, Section, Table

_STYLE = """
body { font: 1rem/1.5 system-ui, sans-serif; color: #111; background: #fff; max-width: 46rem; margin: 0 auto;
  padding: 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 1rem 0 0.25rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 0.6rem; border-bottom: 1px solid #767676; }
p, ul { margin: 0.6rem 0; }
nav ol { columns: 2; padding-left: 1.5rem; }
a { color: inherit; }
#summary p { font-size: 1.08rem; }
#summary p:first-of-type { font-weight: 600; border: 2px solid #111; padding: 0.6rem 0.8rem; }
dl { display: grid; grid-template-columns: 13rem 1fr; margin: 0.6rem 0; }
dt, dd { padding: 0.25rem 0; border-bottom: 1px solid #ccc; margin: 0; }
dt { font-weight: 600; padding-right: 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; font-size: 0.92rem; }
caption { text-align: left; font-weight: 600; padding-bottom: 0.3rem; }
dd, li, td:last-child { overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.7rem 0.3rem 0; border-bottom: 1px solid #ccc; }
thead th { border-bottom: 1px solid #111; }
figure { margin: 1rem 0; break-inside: avoid; }
figcaption { font-weight: 600; }
img { max-width: 100%; height: auto; }
.quiet { color: #444; font-size: 0.92rem; }
@media (max-width: 40rem) {
  nav ol { columns: 1; }
  dl { grid-template-columns: 1fr; }
  dt { border: 0; padding-bottom: 0; }
  dd { padding-top: 0; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table, tbody, tr, td, caption { display: block; }
  tr { border-bottom: 1px solid #767676; padding: 0.3rem 0; }
  td { border: 0; padding: 0.1rem 0; overflow-wrap: anywhere; }
  td:empty { display: none; }
  td::before { content: attr(data-label) ": "; font-weight: 600; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  nav { display: none; }
  h2 { break-after: avoid; }
  tr, dt, dd { break-inside: avoid; }
  .wide { overflow-x: visible; }
}
"""
# Defence in depth: even with an escape missing, nothing could run and nothing could be fetched.
_ALLOWED = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_NO_FIGURES = "Figures are missing: they need matplotlib. Install it with pip install 'dpcausal[plots]'."


def render_page(
    title: str, subtitle: str, sections: Sequence[Section], pictures: Mapping[str, Sequence[Picture]] | None
) -> str:
    """Render a page. If `pictures` is None, it says what to install."""
    links = "".join(f'<li><a href="#{section.key}">{html_text(section.title)}</a></li>' for section in sections)
    missing = f'<p class="quiet">{html_text(_NO_FIGURES)}</p>' if pictures is None else ""
    body = "\n".join(_section(section, (pictures or {}).get(section.key, ())) for section in sections)
    page = f"""<header>
<h1>{html_text(title)}</h1>
<p class="quiet">{html_text(subtitle)}</p>
</header>
<nav aria-label="Sections"><ol>{links}</ol></nav>
<main>
{missing}
{body}
</main>"""
    return html_page(title, page, style=_STYLE, allowed=_ALLOWED)


def _section(section: Section, pictures: Sequence[Picture]) -> str:
    parts = [f'<section id="{section.key}" aria-labelledby="{section.key}-title">']
    parts.append(f'<h2 id="{section.key}-title">{section.number}. {html_text(section.title)}</h2>')
    if section.items:
        lines = "".join(f"<dt>{html_text(label)}</dt><dd>{html_text(words)}</dd>\n" for label, words in section.items)
        parts.append(f"<dl>\n{lines}</dl>")
    parts += [f"<p>{html_text(paragraph)}</p>" for paragraph in section.paragraphs]
    parts += map(_picture, pictures)
    parts += map(_table, section.tables)
    if section.notes:
        parts.append(f'<ul class="quiet">{"".join(f"<li>{html_text(note)}</li>" for note in section.notes)}</ul>')
    return "\n".join([*parts, "</section>"])


def _picture(picture: Picture) -> str:
    data = f"data:{picture.kind};base64,{b64encode(picture.image).decode()}"
    image = f'<img src="{data}" alt="{html_text(picture.alt)}">'
    return f"<figure><figcaption>{html_text(picture.title)}</figcaption>{image}</figure>"


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
