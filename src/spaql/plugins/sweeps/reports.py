"""Parts of reports: tables in several formats, and pages of HTML with embedded figures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from spaql.archive import write_atomically
from spaql.tables import comma_separated, latex, markdown

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1, h2 { line-height: 1.2 } h2 { margin-top: 2.5rem }
table { border-collapse: collapse; font-size: 0.85rem; display: block; overflow-x: auto }
th, td { border-bottom: 1px solid #ddd; padding: 0.3rem 0.6rem; text-align: left; vertical-align: top }
th { border-bottom: 2px solid #888 } figure { margin: 2rem 0 } svg { max-width: 100%; height: auto }
code { background: #f3f3f3; padding: 0 0.2rem }
"""


def write_table(cells: Sequence[dict[str, str]], folder: Path, name: str) -> None:
    """Write rows as Markdown, CSV and LaTeX."""
    for suffix, form in (("md", markdown), ("csv", comma_separated), ("tex", latex)):
        write_atomically(folder / f"{name}.{suffix}", form(cells).encode())


def as_html(title: str, text: str, out: Path) -> str:
    """Return a report as HTML with its figures, which are read from `out`, embedded."""
    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark").enable("table").render(text)

    def inlined(match: re.Match[str]) -> str:
        drawing = (out / match[1]).read_text(encoding="utf-8")
        return "<figure>" + drawing[drawing.index("<svg") :] + "</figure>"

    body = re.sub(r'<img src="([^"]+)"[^>]*>', inlined, body).replace(" ± ", "&nbsp;±&nbsp;")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )
