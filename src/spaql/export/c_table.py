"""The rules of a controller as constant tables in C, and the loop that walks them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from spaql.export.c_common import CUT, TYPES, literal, needs_infinity, prototype, rounding, undefined
from spaql.export.conditions import Table, numbered
from spaql.export.target_controller import MachineController
from spaql.policy import Laws, SwitchingLaws

_ROM = """
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
"""
_READ = {"double": "READ_FLOAT", "float": "READ_FLOAT", "fixed": "READ_LONG"}


def table(controller: MachineController, name: str, *, inside: bool = False) -> Iterator[str]:
    """Yield the lines of the tables, and of the function that looks up in them, or has them inside."""
    yield "#include <stdint.h>"
    if needs_infinity(controller):
        yield "#include <math.h>"
    yield from _ROM.splitlines()
    rows = numbered(controller.tree)
    index = _index_type(len(rows.feature) + len(controller.tree.leaves))
    tables = _tables(controller, rows, index)
    yield next(tables)  # a macro
    if not inside:
        yield from tables
    body = list(_look_up(controller, index))
    yield from rounding(body)
    if isinstance(controller.tree.leaves, Laws):
        yield from ("", *CUT)
    yield from ("", *prototype(controller, name, ""), "{")
    yield from (f"    {line}".rstrip() for line in tables)
    yield from (f"    {line}" for line in body)
    yield "}"


def _tables(controller: MachineController, rows: Table, index: str) -> Iterator[str]:
    tree = controller.tree
    kind, feature = TYPES[controller.number.name], _index_type(tree.width)
    sums = len(tree.combinations)
    yield f"#define RULES {len(rows.feature)}U"
    yield ""
    yield "/* Rule by rule: the observation that it looks at, the threshold, and the places to go to if the"
    yield f" * observation is below it, and if not. Places from RULES on are leaves.{'' if sums else ' */'}"
    if sums:
        yield f" * Numbers from {tree.dims} on are sums of the observations, with the weights below. */"
    yield from _array(f"{feature} FEATURE[RULES]", map(str, rows.feature))
    thresholds = zip(rows.feature, rows.threshold, strict=True)
    written = (
        "INFINITY" if t == math.inf else repr(t) if sums else literal(controller, t, j) for j, t in thresholds
    )
    # Sums are compared in double precision, and all numbers with them.
    yield from _array(f"{'double' if sums else kind} THRESHOLD[RULES]", written)
    yield from _array(f"{index} NEXT[RULES][2]", (f"{{{a}, {b}}}" for a, b in rows.after))
    if sums:
        weights = map(_braced, tree.combinations.tolist())
        yield from _array(f"double WEIGHT[{sums}][{tree.dims}]", weights)
    laws = isinstance(tree.leaves, Laws | SwitchingLaws)
    yield from _law_tables(controller) if laws else _action_table(controller)


def _look_up(controller: MachineController, index: str) -> Iterator[str]:
    dims, sums = controller.tree.dims, len(controller.tree.combinations)
    laws = isinstance(controller.tree.leaves, Laws | SwitchingLaws)
    fast = "uint_fast32_t" if index == "uint32_t" else "uint_fast16_t"
    yield f"{fast} place = 0U;"
    if controller.n_actions > 1 or laws or sums:
        yield f"{fast} i;"
    if laws or sums:
        yield f"{fast} j;"
    if sums:
        yield f"double x[{dims + sums}];"
    if isinstance(controller.tree.leaves, SwitchingLaws):
        yield "double best = -INFINITY;"
    feature = f"{_read_index(_index_type(dims + sums))}(&FEATURE[place])"
    below = (
        f"{'x' if sums else 'observation'}[{feature}] < {_READ[controller.number.name]}(&THRESHOLD[place])"
    )
    if isinstance(controller.tree.leaves, SwitchingLaws):
        last = _switching_lines(controller)
    else:
        last = _law_lines(controller) if laws else _action_lines(controller)
    lines = [
        *(_sum_lines(controller) if sums else []),
        "/* Every place comes after the one before it, so that this ends. */",
        "while (place < RULES) {",
        f"    place = {_read_index(index)}(&NEXT[place][({below}) ? 0 : 1]);",
        "}",
        "place -= RULES;",
        *last,
    ]
    if controller.number.name == "fixed":
        yield from lines
        return
    yield f"if ({undefined([f'observation[{j}]' for j in range(dims)])}) {{"
    for i, value in enumerate(controller.safe):
        yield f"    action[{i}] = {literal(controller, value, action=i)}; /* the safe action */"
    yield "} else {"
    yield from (f"    {line}" for line in lines)
    yield "}"


def _action_table(controller: MachineController) -> Iterator[str]:
    kind, n = TYPES[controller.number.name], controller.n_actions
    rows = [
        [literal(controller, x, action=i) for i, x in enumerate(controller.leaf_value(row))]
        for row in range(len(controller.tree.leaves))
    ]
    if n == 1:
        yield from _array(f"{kind} ACTION[{len(rows)}]", (row[0] for row in rows))
    else:
        yield from _array(f"{kind} ACTION[{len(rows)}][{n}]", (f"{{{', '.join(row)}}}" for row in rows))


def _action_lines(controller: MachineController) -> list[str]:
    read, n = _READ[controller.number.name], controller.n_actions
    if n == 1:
        return [f"action[0] = {read}(&ACTION[place]);"]
    return [f"for (i = 0U; i < {n}U; ++i) {{", f"    action[i] = {read}(&ACTION[place][i]);", "}"]


def _law_tables(controller: MachineController) -> Iterator[str]:
    laws, dims = controller.tree.leaves, controller.tree.dims
    assert isinstance(laws, Laws | SwitchingLaws)
    n = laws.offset.shape[1]
    gains = ("{" + ", ".join(_braced(row) for row in law) + "}" for law in laws.gain.tolist())
    yield from _array(f"double GAIN[{len(laws)}][{n}][{dims}]", gains)
    yield from _array(f"double OFFSET[{len(laws)}][{n}]", map(_braced, laws.offset.tolist()))
    if isinstance(laws, SwitchingLaws):
        return
    for name, values in (("LOW", laws.low), ("HIGH", laws.high), ("SAFE", controller.safe)):
        yield from _array(f"double {name}[{n}]", map(repr, np.asarray(values).tolist()))


def _law_lines(controller: MachineController) -> list[str]:
    single = controller.number.name == "float"
    return [
        f"for (i = 0U; i < {controller.n_actions}U; ++i) {{",
        "    double u = READ_FLOAT(&OFFSET[place][i]);",
        *_terms(controller, "u", "gain", "GAIN[place][i][j]"),
        "    u = cut(u, READ_FLOAT(&LOW[i]), READ_FLOAT(&HIGH[i]), READ_FLOAT(&SAFE[i]));",
        f"    action[i] = {'(float)' if single else ''}u;",
        "}",
    ]


def _switching_lines(controller: MachineController) -> list[str]:
    laws = controller.tree.leaves
    assert isinstance(laws, SwitchingLaws)
    (first,) = controller.machine_action(laws.start)
    return [
        "/* The first of the highest scores; one that is NaN is never higher. */",
        f"action[0] = {literal(controller, first, action=0)};",
        f"for (i = 0U; i < {laws.offset.shape[1]}U; ++i) {{",
        "    double score = READ_FLOAT(&OFFSET[place][i]);",
        *_terms(controller, "score", "gain", "GAIN[place][i][j]"),
        "    if (score > best) {",
        "        best = score;",
        f"        action[0] = {'(float)' if controller.number.name == 'float' else ''}"
        f"({float(laws.start)!r} + (double)i);",
        "    }",
        "}",
    ]


def _sum_lines(controller: MachineController) -> list[str]:
    dims, single = controller.tree.dims, controller.number.name == "float"
    return [
        f"for (j = 0U; j < {dims}U; ++j) {{",
        f"    x[j] = {'(double)' if single else ''}observation[j];",
        "}",
        f"for (i = 0U; i < {len(controller.tree.combinations)}U; ++i) {{",
        "    double sum = 0.0;",
        *_terms(controller, "sum", "weight", "WEIGHT[i][j]"),
        f"    x[{dims}U + i] = sum;",
        "}",
    ]


def _terms(controller: MachineController, total: str, weight: str, place: str) -> list[str]:
    """Return the loop that adds the terms of a weighted sum in a fixed order, in double precision."""
    cast = "(double)" if controller.number.name == "float" else ""
    return [
        f"    for (j = 0U; j < {controller.tree.dims}U; ++j) {{",
        f"        const double {weight} = READ_FLOAT(&{place});",
        f"        if (({weight} < 0.0) || ({weight} > 0.0)) {{",
        f"            {total} = {total} + rounded({weight} * {cast}observation[j]);",
        "        }",
        "    }",
    ]


def _braced(values: Sequence[float]) -> str:
    return "{" + ", ".join("-INFINITY" if x == -math.inf else repr(x) for x in values) + "}"


def _array(declaration: str, values: Iterator[str] | map[str]) -> Iterator[str]:
    """Yield the lines of a constant array."""
    yield ""
    yield f"static const {declaration} IN_FLASH = {{"
    line = "   "
    for value in values:
        if len(line) + len(value) > 100:
            yield line
            line = "   "
        line += f" {value},"
    yield line.rstrip(",")
    yield "};"


def _index_type(n: int) -> str:
    return "uint8_t" if n <= 0xFF else "uint16_t" if n <= 0xFFFF else "uint32_t"


def _read_index(kind: str) -> str:
    return {"uint8_t": "READ_BYTE", "uint16_t": "READ_WORD", "uint32_t": "READ_LONG"}[kind]
