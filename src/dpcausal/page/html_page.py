"""One self-contained HTML page that fetches nothing. All text is treated as untrusted and escaped."""

import re
from html import escape

# Control characters, unpaired surrogates, and characters that change the text direction.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
# Spaces at which no line may break: "95 %" and "± 2".
_UNBROKEN = re.compile(r"(?<=\d) (?=%)|(?<=±) (?=\d)")


def html_text(words: str) -> str:
    """Escape untrusted text for HTML."""
    return escape(_UNBROKEN.sub("\u00a0", _UNPRINTABLE.sub("\ufffd", words)))


def html_page(title: str, body: str, *, style: str, allowed: str) -> str:
    """Return a page.

    Args:
        title: Its title, not yet escaped.
        body: The HTML of its body, in which all text is escaped already.
        allowed: Its content security policy: even with an escape missing, nothing else runs or is fetched.
    """
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{allowed}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="dpcausal">
<title>{html_text(title)}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
