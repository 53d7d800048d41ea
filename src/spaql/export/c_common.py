"""What both forms of C have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from spaql.export.comments import heading
from spaql.export.conditions import terms
from spaql.export.numbers import Fixed
from spaql.export.target_controller import MachineController
from spaql.languages import C, identifiers, in_comment
from spaql.policy import Laws, SwitchingLaws

TYPES = {"double": "double", "float": "float", "fixed": "int32_t"}
_RESERVED = f"{C} action observation cut rounded node action_of "

_ROUNDED = (
    "/* A product as it is stored. GCC follows the pragma above, and some processors cannot fuse; any other",
    " * compiler must store it: with -ffp-contract=fast, clang ignores its pragmas. */",
    "#if defined(__GNUC__) && !defined(__clang__)",
    "#define STORED",
    "#elif defined(__wasm__) || (defined(__x86_64__) && !defined(__FMA__) && !defined(__FMA4__))",
    "#define STORED",
    "#else",
    "#define STORED volatile",
    "#endif",
    "static double rounded(double product)",
    "{",
    "    const STORED double kept = product;",
    "    return kept;",
    "}",
)

CUT = (
    "/* The law's result cut to its bounds; the safe action if it is NaN. */",
    "static double cut(double u, double low, double high, double safe)",
    "{",
    "    double kept = u;",
    "    if (u != u) {",
    "        kept = safe;",
    "    } else if (u < low) {",
    "        kept = low;",
    "    } else if (u > high) {",
    "        kept = high;",
    "    } else {",
    "        /* within */",
    "    }",
    "    return kept;",
    "}",
)


def comment(controller: MachineController, file: str) -> list[str]:
    """Return the comment at the head of a file."""
    return comment_of(heading(controller, file))


def comment_of(lines: Sequence[str]) -> list[str]:
    """Return lines as a comment."""
    kept = enumerate(map(in_comment, lines))
    return [*(f"{'/*' if not i else ' *'} {line}".rstrip() for i, line in kept), " */"]


def checks(controller: MachineController) -> Iterator[str]:
    """Yield checks against compilers with other number types, and flags that change arithmetic."""
    if isinstance(controller.number, Fixed):
        return
    laws = isinstance(controller.tree.leaves, Laws | SwitchingLaws)
    sums = len(controller.tree.combinations) > 0
    doubles = None
    if laws or sums or controller.number.name == "double":
        # Laws and sums are computed in double precision whatever the observations are.
        what_to_do = "sums of observations need it" if sums else "export float or fixed numbers instead"
        doubles = "laws need it" if laws else what_to_do
    yield from arithmetic_checks(doubles, single=controller.number.name == "float", sums=laws or sums)


def arithmetic_checks(doubles: str | None, *, single: bool, sums: bool) -> Iterator[str]:
    """Yield checks of the compiler's arithmetic.

    Parameters
    ----------
    doubles
        What to do if doubles do not have 64 bits; None if none are used.
    single
        Whether floats are used.
    sums
        Whether there are sums of products.
    """
    yield "#include <float.h>"
    yield ""
    if doubles is not None:
        yield "#if DBL_MANT_DIG != 53"
        yield f'#error "double must have 64 bits: {doubles}"'
        yield "#endif"
    if single:
        yield "#if FLT_MANT_DIG != 24"
        yield '#error "float must have 32 bits"'
        yield "#endif"
    # 16 is for compilers with half precision: the other types are still computed as stored.
    yield "#if (FLT_EVAL_METHOD != 0) && (FLT_EVAL_METHOD != 16)"
    yield '#error "numbers must be computed as they are stored: on x86 compile with -msse2 -mfpmath=sse"'
    yield "#endif"
    yield "#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && (__FINITE_MATH_ONLY__ > 0))"
    yield '#error "compile without -ffast-math: it assumes that there is no NaN"'
    yield "#endif"
    if doubles is not None:
        yield "#if defined(__STDC_VERSION__) && (__STDC_VERSION__ >= 201112L)"
        yield '_Static_assert(sizeof(0.1) == sizeof(double), "compile without -fsingle-precision-constant");'
        yield "#endif"
    if sums:
        yield from _SEPARATE


_SEPARATE = (
    "#if defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)",
    '#error "compile without -funsafe-math-optimizations: it computes sums in another order"',
    "#endif",
    "/* Every product, sum and quotient is rounded on its own, in the order that is written here. */",
    "#if defined(__GNUC__) && !defined(__clang__)",
    '#pragma GCC optimize ("fp-contract=off")',
    "#else",
    "#if defined(__clang__) && (defined(__x86_64__) || defined(__i386__))",
    "#pragma float_control(precise, on)",
    "#elif defined(__clang__)",
    "#pragma clang fp reassociate(off)",
    "#endif",
    "#pragma STDC FP_CONTRACT OFF",
    "#endif",
)


def rounding(lines: Iterable[str]) -> Iterator[str]:
    """Yield the function that rounds products, if lines call it."""
    if any("rounded(" in line for line in lines):
        yield from ("", *_ROUNDED)


def prototype(controller: MachineController, name: str, end: str) -> list[str]:
    """Return the declaration of the function."""
    kind, prefix = TYPES[controller.number.name], name.upper()
    return [
        f"void {name}_act(const {kind} observation[{prefix}_OBSERVATIONS],",
        f"{' ' * (len(name) + 10)}{kind} action[{prefix}_ACTIONS]){end}",
    ]


def names_in(controller: MachineController) -> tuple[str, ...]:
    """Return the names of the numbers that rules compare as C identifiers: observations, then sums."""
    tree = controller.tree
    sums = (f"sum_{i}" for i in range(len(tree.combinations)))
    return identifiers([*tree.observations, *sums], _RESERVED + ("best score" if controller.switches else ""))


def weighted(
    controller: MachineController, names: Sequence[str], weights: NDArray[np.float64], offset: float | None
) -> str:
    """Return a weighted sum in a fixed order, and in double precision whatever the number type."""
    cast = "(double)" if controller.number.name == "float" else ""
    total = None if offset is None else repr(offset)
    for j, weight in terms(weights):
        term = f"rounded({weight!r} * {cast}{names[j]})"
        total = term if total is None else f"({total} + {term})"
    assert total is not None
    return total


def undefined(names: Sequence[str]) -> str:
    """Return the condition that one of the observations is NaN."""
    return " ||\n        ".join(f"({name} != {name})" for name in names)


def needs_infinity(controller: MachineController) -> bool:
    """Return whether a threshold or an offset is infinite, which needs INFINITY of <math.h>."""
    tree = controller.tree
    return isinstance(tree.leaves, SwitchingLaws) or bool((tree.threshold == math.inf).any())


def literal(controller: MachineController, x: float, feature: int = -1, action: int = -1) -> str:
    """Return a threshold or a number of an action as a literal of the number type."""
    number = controller.number
    if feature >= controller.tree.dims:  # sums are doubles
        return repr(x)
    if isinstance(number, Fixed):
        bits = number.observation_bits[feature] if feature >= 0 else number.action_bits[action]
        return f"{round(math.ldexp(x, bits))}"
    if number.name == "float":
        return f"{shortest_single(x)}f"
    return repr(x)


def shortest_single(x: float) -> str:
    """Return a single-precision number with as few digits as identify it."""
    text = str(np.float32(x))
    return text if any(c in text for c in ".en") else text + ".0"
