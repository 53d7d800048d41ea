"""What exported C asks of a compiler's arithmetic: IEEE 754, and every operation rounded on its own."""

from __future__ import annotations

from collections.abc import Iterator

TYPES = {"double": "double", "float": "float", "fixed": "int32_t"}
"""The types of numbers in C."""
ROUNDED = (
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
