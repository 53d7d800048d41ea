"""Literals of Structured Text, and names that its variables cannot have."""

from __future__ import annotations

import numpy as np

LIBRARY = """
    add concat ctd ctu ctud delete derivative div eq f_trig find ge gt hysteresis insert integral le left len
    limit lt mid mul ne pid r_trig ramp replace right rs rtc sema sr tof ton tp trunc
"""
"""Functions and function blocks of the standard library, whose names some compilers refuse for variables."""


def literal(kind: str, x: float) -> str:
    """Return a number as a typed literal, with the decimal point that the standard requires."""
    text = str(np.float32(x)) if kind == "REAL" else repr(x)
    mantissa, _, exponent = text.partition("e")
    mantissa += "" if "." in mantissa else ".0"
    return f"{kind}#{mantissa}" + (f"E{int(exponent)}" if exponent else "")
