"""Tables of rules in C, and the loop that walks them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from spaql.program.ir import Walk

if TYPE_CHECKING:
    from spaql.export.languages.c_syntax import CSyntax

IN_FLASH = """
/* Constants of an AVR stay in its flash memory only if they are read from there. */
#if defined(__AVR__)
#include <avr/pgmspace.h>
#define IN_FLASH PROGMEM
#define READ_BYTE(place) pgm_read_byte(place)
#define READ_WORD(place) pgm_read_word(place)
#define READ_FLOAT(place) pgm_read_float(place)
#define READ_LONG(place) ((int32_t)pgm_read_dword(place))
#else
#define IN_FLASH
#define READ_BYTE(place) (*(place))
#define READ_WORD(place) (*(place))
#define READ_FLOAT(place) (*(place))
#define READ_LONG(place) (*(place))
#endif
""".splitlines()
_DEEP = 8 * " "
_READ = {
    "uint8_t": "READ_BYTE",
    "uint16_t": "READ_WORD",
    "uint32_t": "READ_LONG",
    "int32_t": "READ_LONG",
    "float": "READ_FLOAT",
    "double": "READ_FLOAT",
}


def walk(syntax: CSyntax, table: Walk) -> Iterator[str]:
    """Yield the block that looks up in a table; the numbers in it are of the type of the syntax."""
    real = syntax.real
    rules = len(table.column)
    index = _index_type(rules + len(table.offset))
    column = _index_type(len(table.compared))
    fast = "uint_fast32_t" if index == "uint32_t" else "uint_fast16_t"
    yield "{"
    yield "    /* Rule by rule: the number that it compares, the threshold, and the places to go to if the"
    yield "     * number is below it, and if not. Places after the rules are leaves. */"
    yield from _array(f"{column} column[{rules}]", map(str, table.column))
    yield from _array(f"{real} threshold[{rules}]", map(syntax.number, table.threshold))
    yield from _array(f"{index} next[{rules}][2]", (f"{{{a}, {b}}}" for a, b in table.after))
    rows = len(table.offset)
    outputs = len(table.outputs)
    yield from _array(f"{real} offset[{rows}][{outputs}]", (_row(syntax, row) for row in table.offset))
    if table.terms:
        gains = ("{" + ", ".join(_row(syntax, law) for law in row) + "}" for row in table.gain)
        yield from _array(f"{real} gain[{rows}][{outputs}][{len(table.terms)}]", gains)
    yield f"    const {real} x[{len(table.compared)}] = {{{', '.join(map(syntax.name, table.compared))}}};"
    yield f"    {fast} place = 0U;"
    yield ""
    yield "    /* Every place comes after the one before it, so that this ends. */"
    yield f"    while (place < {rules}U) {{"
    below = f"x[{_READ[column]}(&column[place])] < {_READ[real]}(&threshold[place])"
    yield f"        place = {_READ[index]}(&next[place][({below}) ? 0 : 1]);"
    yield "    }"
    yield f"    place -= {rules}U;"
    for k, output in enumerate(table.outputs):
        yield f"    {syntax.name(output)} = {_READ[real]}(&offset[place][{k}]);"
    if table.terms:
        yield from _sums(syntax, table, fast)
    yield "}"


def _sums(syntax: CSyntax, table: Walk, fast: str) -> Iterator[str]:
    """Yield the loops that add terms in their order, without those whose gain is 0."""
    real = syntax.real
    n = len(table.terms)
    terms = "x"
    if table.terms != table.compared[:n]:
        terms = "z"
        yield f"    const {real} z[{n}] = {{{', '.join(map(syntax.name, table.terms))}}};"
    yield f"    for ({fast} j = 0U; j < {n}U; ++j) {{"
    for k, output in enumerate(table.outputs):
        word = syntax.name(output)
        yield f"        const {real} gain_{k} = {_READ[real]}(&gain[place][{k}][j]);"
        yield f"        if ((gain_{k} < 0.0) || (gain_{k} > 0.0)) {{"
        yield f"            {word} = {word} + rounded(gain_{k} * {terms}[j]);"
        yield "        }"
    yield "    }"


def _row(syntax: CSyntax, values: Sequence[float]) -> str:
    return "{" + ", ".join(map(syntax.number, values)) + "}"


def _array(declaration: str, values: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a constant array."""
    yield f"    static const {declaration} IN_FLASH = {{"
    yield from textwrap.wrap(", ".join(values), 96, initial_indent=_DEEP, subsequent_indent=_DEEP)
    yield "    };"


def _index_type(n: int) -> str:
    return "uint8_t" if n <= 0xFF else "uint16_t" if n <= 0xFFFF else "uint32_t"
