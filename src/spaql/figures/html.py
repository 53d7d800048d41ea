"""Pages of HTML that need no other file, and their pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from spaql.controllers import Controller
from spaql.errors import SpaqlError
from spaql.figures.drawing import svg
from spaql.formatting import counted
from spaql.languages import in_html
from spaql.tables import filled, html_table

_NO_NETWORK = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:"


def page(title: str, style: str, body: str, *, scripts: bool = False) -> str:
    """Return a page; a browser loads nothing for it, and runs its scripts only if it may have some.

    Examples
    --------
    >>> "<title>A &lt; B</title>" in page("A < B", "p { color: red }", paragraphs("x"))
    True
    """
    policy = _NO_NETWORK + "; script-src 'unsafe-inline'" * scripts
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{in_html(title)}</title><style>{style}</style></head><body>{body}</body></html>\n"
    )


def paragraphs(*texts: str, kind: str = "") -> str:
    """Return a paragraph for each text."""
    return "".join(f'<p class="{kind}">{in_html(text)}</p>' for text in texts)


def items(texts: Iterable[str]) -> str:
    """Return a list."""
    return f"<ul>{''.join(f'<li>{in_html(text)}</li>' for text in texts)}</ul>"


def table(rows: Sequence[Mapping[str, str]], title: str = "", kind: str = "") -> str:
    """Return a table without its empty columns; the kind `words` has no numbers."""
    return f'<h3>{in_html(title)}</h3><div class="scroll {kind}">{html_table(filled(rows))}</div>'


def code(text: str) -> str:
    """Return a text as it is."""
    return f"<pre>{in_html(text)}</pre>"


def size_text(controller: Controller) -> str:
    """Return the size of a controller."""
    return f"{counted(controller.n_leaves, 'leaf')}, {counted(controller.n_numbers, 'parameter')}"


def missing(what: str, why: object) -> str:
    """Return that a part of the report is missing, and why."""
    return paragraphs(f"{what}: {why}", kind="missing")


def attempted(what: str, make: Callable[[], str]) -> str:
    """Return a part of the report, or why it cannot be had."""
    try:
        return make()
    except SpaqlError as error:
        return missing(f"{what} is missing", error)


def picture(what: str, compute: Callable[[], Any]) -> str:
    """Return a figure, or why it cannot be drawn."""
    return attempted(what, lambda: f"<figure>{svg(compute())}</figure>")
