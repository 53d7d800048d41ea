"""Tables as Markdown, CSV, LaTeX and HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from spaql.languages import in_csv, in_html, in_markdown, printable

TextTable = list[dict[str, str]]
"""The rows of a table, as text by the names of the columns."""
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": "$<$",
        ">": "$>$",
        "≥": r"$\ge$",
        "±": r"$\pm$",
        "×": r"$\times$",
        "−": "$-$",
        "…": r"\ldots{}",
    }
)


def markdown(cells: Sequence[Mapping[str, str]]) -> str:
    """Return rows as a Markdown table."""
    head = list(cells[0])
    lines = [head, ["---"] * len(head), *(list(row.values()) for row in cells)]
    safe = (map(in_markdown, line) for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in safe) + "\n"


def aligned(cells: Sequence[Mapping[str, str]], width: int | None = None) -> str:
    """Return rows as text in columns, the first of them to the left; columns without entries are left out.

    Columns that do not fit into the width are continued below, after the first column.

    Examples
    --------
    >>> print(aligned([{"name": "a", "x": "1", "y": ""}, {"name": "bc", "x": "20", "y": ""}]))
    name   x
    a      1
    bc    20
    """
    cells = filled(cells)
    label, *others = cells[0]
    widths = {name: max(len(name), *(len(row[name]) for row in cells)) for name in (label, *others)}
    blocks: list[list[str]] = [[]]
    room = 0
    for name in others:
        if width is not None and blocks[-1] and room + 2 + widths[name] > width:
            blocks.append([])
        if not blocks[-1]:
            room = widths[label]
        blocks[-1].append(name)
        room += 2 + widths[name]
    rows = [dict(zip(widths, widths, strict=True)), *cells]
    lines = (
        "\n".join(
            "  ".join([row[label].ljust(widths[label]), *(row[n].rjust(widths[n]) for n in names)]).rstrip()
            for row in rows
        )
        for names in blocks
    )
    return "\n\n".join(lines)


def filled(cells: Sequence[Mapping[str, str]]) -> TextTable:
    """Return rows without the columns that have no entries.

    Examples
    --------
    >>> filled([{"name": "a", "x": "1", "y": ""}, {"name": "b", "x": "", "y": ""}])
    [{'name': 'a', 'x': '1'}, {'name': 'b', 'x': ''}]
    """
    names = [name for name in cells[0] if any(row[name] for row in cells)]
    return [{name: row[name] for name in names} for row in cells]


def comma_separated(cells: Sequence[Mapping[str, str]]) -> str:
    """Return rows as CSV."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([*map(in_csv, row)] for row in (cells[0], *(row.values() for row in cells)))
    return text.getvalue()


def latex(cells: Sequence[Mapping[str, str]]) -> str:
    """Return rows as a LaTeX table."""

    def line(values: Sequence[str]) -> str:
        return " & ".join(_latex_cell(value) for value in values) + r" \\"

    body = [line(list(row.values())) for row in cells]
    columns = "l" * len(cells[0])
    head = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", line(list(cells[0])), r"\hline"]
    return "\n".join([*head, *body, r"\hline", r"\end{tabular}", ""])


def _latex_cell(value: str) -> str:
    """Return a cell; a leading bracket is protected, as an option of the line break before it otherwise."""
    plain = printable(value).translate(_LATEX)
    return f"{{{plain}}}" if plain.startswith(("[", "*")) else plain


def html_table(cells: Sequence[Mapping[str, str]]) -> str:
    """Return rows as an HTML table.

    Examples
    --------
    >>> html_table([{"a": "<"}])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;</td></tr></tbody></table>'
    """

    def row(values: Iterable[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{in_html(value)}</{tag}>" for value in values) + "</tr>"

    body = "".join(row(line.values(), "td") for line in cells)
    return f"<table><thead>{row(cells[0], 'th')}</thead><tbody>{body}</tbody></table>"
