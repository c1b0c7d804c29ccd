"""The style sheet that all pages share: light and dark, wide and narrow, screen and paper."""

from dpcausal.page.html_page import html_text

LIGHT = {
    "paper": "#ffffff",
    "card": "#f3f6f5",
    "ink": "#1c2424",
    "quiet": "#55605f",
    "rule": "#cfd6d5",
    "good": "#00695c",
    "bad": "#a63c06",
    "accent": "#00695c",
}
DARK = {
    "paper": "#121716",
    "card": "#1b2221",
    "ink": "#e5ebea",
    "quiet": "#a5b2b0",
    "rule": "#3c4846",
    "good": "#6fcdbf",
    "bad": "#f2a06b",
    "accent": "#6fcdbf",
}

_STYLE = """
* { box-sizing: border-box; }
body { font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
  margin: 0 auto; padding: 1.2rem 1rem 3rem; overflow-wrap: break-word; }
header { border-bottom: 3px solid var(--accent); padding-bottom: 0.7rem; margin-bottom: 1.2rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 0.2rem; text-wrap: balance; }
h2 { font-size: 1.15rem; line-height: 1.3; margin: 2rem 0 0.5rem; color: var(--accent); }
p, ul { margin: 0.5rem 0; }
a { color: var(--accent); }
.quiet { color: var(--quiet); font-size: 0.92em; }
div.verdict { background: var(--card); border-left: 6px solid var(--accent); padding: 0.8rem 1.1rem;
  margin: 0 0 1.2rem; }
div.verdict strong { display: block; color: var(--accent); font-size: 1.15rem; margin-bottom: 0.15rem; }
div.verdict p { font-size: 1.3rem; line-height: 1.35; margin: 0; }
.alarm { border-left: 6px solid var(--bad); background: var(--card); padding: 0.6rem 0.9rem; font-weight: 600; }
.key { display: inline-flex; align-items: center; gap: 0.4rem; margin: 0 1.3rem 0 0; font-size: 0.9rem; }
.key svg { flex: none; }
figure { margin: 1.2rem 0; break-inside: avoid; }
svg { print-color-adjust: exact; -webkit-print-color-adjust: exact; display: block; }
table { border-collapse: collapse; width: 100%; font-size: 0.92em; font-variant-numeric: tabular-nums; }
@media print {
  :root { color-scheme: light; font-size: 9.5pt; }
  div.verdict, header { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { max-width: none; padding: 0; }
  h1, h2, h3, caption { break-after: avoid; }
}
"""


def page_style(own: str) -> str:
    """Return the style sheet of a page: what all share, and its own after it."""
    light, dark = (" ".join(f"--{name}: {colour};" for name, colour in each.items()) for each in (LIGHT, DARK))
    # Paper is white, whatever the screen prefers.
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}{_STYLE}{own}"
    )


def page_header(title: str, subtitle: str) -> str:
    """Return the head of a page: the title and a line below it."""
    return f'<header>\n<h1>{html_text(title)}</h1>\n<p class="quiet">{html_text(subtitle)}</p>\n</header>'
