"""Tapes evaluated on sets: every row holds all that it can be for the points of its inputs."""

from __future__ import annotations

import math

import numpy as np

from spaql.kernels.jit import njit_in_place
from spaql.kernels.verify.forms import (
    EPS,
    HIGH,
    LOW,
    TINY,
    A,
    C,
    R,
    copy_row,
    down,
    is_bounded,
    put_affine,
    put_const,
    put_interval,
    put_max,
    put_min,
    put_negative,
    put_product,
    put_quotient,
    put_single,
    put_square,
    put_sum,
    put_unknown,
    put_wave,
    settle,
    spread,
    up,
)
from spaql.kernels.verify.points import (
    ABS,
    ADD,
    ATAN,
    ATAN2,
    CONST,
    COS,
    DIV,
    EQUAL,
    EXP,
    FLOOR,
    FMOD,
    INPUT,
    INTERP,
    LESS,
    LESS_EQUAL,
    LOG,
    MAX,
    MIN,
    MOD,
    MUL,
    NEG,
    SIN,
    SINGLE,
    SQRT,
    SQUARE,
    SUB,
    TAN,
    TANH,
    UNKNOWN,
    Floats,
    Ints,
    TapeArrays,
    function,
    interpolate,
)

WORK = 6
"""Rows of work that operations use."""
MOST_TURNS = 1e6
"""Beyond so many periods a remainder is anything."""
TURN_ERROR = 1e-9
"""More than the error of the number of periods, which is at most MOST_TURNS * EPS = 2e-10."""


@njit_in_place
def put_function(m: Floats, z: int, x: int, op: int) -> None:
    """Set row z to an ascending function of x, by its tangent and a bound of the second derivative."""
    low = m[x, LOW]
    high = m[x, HIGH]
    # Of each, the slope at the middle and a bound of the second derivative over the range.
    outside = (op == SQRT and not low >= 0.0) or (op == LOG and not low > 0.0)
    outside = outside or (op == TAN and not (low > -1.57 and high < 1.57))
    if outside:
        put_unknown(m, z)
        return
    first = function(op, low)
    last = function(op, high)
    bottom = first - 4 * EPS * abs(first) - TINY
    top = last + 4 * EPS * abs(last) + TINY
    mid = 0.5 * (low + high)
    rad = up(max(high - mid, mid - low))
    value = function(op, mid)
    if op == SQRT:
        bottom = max(bottom, 0.0)
        slope = 0.5 / value if value > 0.0 else math.inf
        bend = 0.25 / (low * math.sqrt(low)) if low > 0.0 else math.inf
    elif op == EXP:
        slope = value
        bend = last
    elif op == LOG:
        slope = 1.0 / mid
        bend = 1.0 / (low * low)
    elif op == ATAN:
        slope = 1.0 / (1.0 + mid * mid)
        bend = 0.65  # |2 x / (1 + x**2)**2| <= 3 sqrt(3) / 8 = 0.6495
    elif op == TANH:
        slope = 1.0 - value * value
        bend = 0.77  # 2 |t| (1 - t**2) <= 4 / (3 sqrt(3)) = 0.7698, with t = tanh x
    else:
        steep = max(abs(first), abs(last))
        slope = 1.0 + value * value
        bend = 2.0 * steep * (1.0 + steep * steep)
    # Taylor, and rounding of value (4 ulp), slope and shift, times numbers of at most |mid| + rad.
    error = 0.5 * rad * rad * bend * (1 + 64 * EPS)
    error += 32 * EPS * (abs(value) + (abs(slope) + 1.0) * (abs(mid) + rad))
    if math.isfinite(error) and math.isfinite(slope):
        put_affine(m, z, x, slope, value - slope * mid, error, bottom, top)
    else:
        put_interval(m, z, bottom, top)


@njit_in_place
def put_atan2(m: Floats, z: int, y: int, x: int, work: int) -> None:
    """Set row z to atan2(y, x), by its tangent plane; uses two rows of work."""
    y_low = m[y, LOW]
    y_high = m[y, HIGH]
    x_low = m[x, LOW]
    x_high = m[x, HIGH]
    # The angle jumps across the negative x axis, and is none at the origin.
    if not (x_low > 0.0 or y_low > 0.0 or y_high < 0.0):
        put_interval(m, z, -3.1415926535897936, 3.1415926535897936)
        return
    a = math.atan2(y_low, x_low)
    b = math.atan2(y_low, x_high)
    c = math.atan2(y_high, x_low)
    d = math.atan2(y_high, x_high)
    low = min(min(a, b), min(c, d)) - 8 * EPS * 3.2
    high = max(max(a, b), max(c, d)) + 8 * EPS * 3.2
    v = 0.5 * (y_low + y_high)
    u = 0.5 * (x_low + x_high)
    rv = up(max(y_high - v, v - y_low))
    ru = up(max(x_high - u, u - x_low))
    near_x = max(x_low, max(-x_high, 0.0))
    near_y = max(y_low, max(-y_high, 0.0))
    least = (near_x * near_x + near_y * near_y) * (1.0 - 16 * EPS)
    square = u * u + v * v
    if not (least > 0.0 and square > 0.0):
        put_interval(m, z, low, high)
        return
    # Taylor: the second derivatives are a matrix with the eigenvalues 1 / r**2 and -1 / r**2.
    error = 0.5 * (rv * rv + ru * ru) / least * (1 + 64 * EPS)
    along_y = u / square
    along_x = -v / square
    error += 64 * EPS * (4.0 + (abs(along_y) + abs(along_x)) * (abs(v) + rv + abs(u) + ru))
    shift = math.atan2(v, u) - along_y * v - along_x * u
    if not math.isfinite(error):
        put_interval(m, z, low, high)
        return
    put_affine(m, work, y, along_y, shift, error, -math.inf, math.inf)
    put_affine(m, work + 1, x, along_x, 0.0, 0.0, -math.inf, math.inf)
    put_sum(m, z, work, work + 1, 1.0)
    settle(m, z, low, high)


@njit_in_place
def put_mod(m: Floats, z: int, x: int, period: float) -> None:
    """Set row z to x % period."""
    low = np.floor(m[x, LOW] / period - TURN_ERROR)
    high = np.floor(m[x, HIGH] / period + TURN_ERROR)
    if low == high and abs(low) < MOST_TURNS:
        put_affine(m, z, x, 1.0, -low * period, 8 * EPS * (abs(low) + 1.0) * period, 0.0, up(period))
    else:
        put_interval(m, z, 0.0, up(period))


@njit_in_place
def put_fmod(m: Floats, z: int, x: int, period: float) -> None:
    """Set row z to the remainder of C, which has the sign of x."""
    a = m[x, LOW]
    b = m[x, HIGH]
    low = max(np.floor(a / period - TURN_ERROR), 0.0) if a >= 0.0 else -np.floor(-a / period + TURN_ERROR)
    high = np.floor(b / period + TURN_ERROR) if b >= 0.0 else -max(np.floor(-b / period - TURN_ERROR), 0.0)
    bottom = -period if a < 0.0 else 0.0
    top = period if b > 0.0 else 0.0
    if low == high and abs(low) < MOST_TURNS:
        put_affine(m, z, x, 1.0, -low * period, 8 * EPS * abs(low) * period, bottom, top)
    else:
        put_interval(m, z, bottom, top)


@njit_in_place
def put_interp(m: Floats, z: int, x: int, tables: Floats, table: int) -> None:
    """Set row z to the value of a table, by the chord over the range of x."""
    low = m[x, LOW]
    high = m[x, HIGH]
    first = interpolate(tables, table, low)
    last = interpolate(tables, table, high)
    slope = (last - first) / (high - low) if high > low else 0.0
    bottom = min(first, last)
    top = max(first, last)
    above = 0.0
    below = 0.0
    size = abs(first) + abs(last)
    for i in range(tables.shape[2]):
        point = tables[table, 0, i]
        value = tables[table, 1, i]
        if low < point < high:
            bottom = min(bottom, value)
            top = max(top, value)
            gap = value - (first + slope * (point - low))
            above = max(above, gap)
            below = min(below, gap)
            size += abs(value) + abs(slope) * (abs(point) + abs(low))
        if i > 0 and tables[table, 0, i - 1] < high and point > low:
            rise = (value - tables[table, 1, i - 1]) / (point - tables[table, 0, i - 1])
            size += (
                abs(value) + abs(tables[table, 1, i - 1]) + abs(rise) * (abs(point) + abs(low) + abs(high))
            )
    size += abs(slope) * (abs(low) + abs(high))
    if not math.isfinite(size):
        put_unknown(m, z)
        return
    slack = 32 * EPS * size + TINY
    error = 0.5 * (above - below) + slack
    shift = first - slope * low + 0.5 * (above + below)
    put_affine(m, z, x, slope, shift, error, bottom - slack, top + slack)


@njit_in_place
def run_set(tape: TapeArrays, m: Floats, base: int, inputs: int, work: int) -> None:
    """Write the rows of a tape, from row `base` of the matrix on, for sets in the rows from `inputs` on.

    What is computed from a row that is not bounded is not bounded either, even where min, max, sin or % would
    bound a number: it may be NaN.
    """
    for i in range(tape.code.shape[0]):
        op = tape.code[i]
        z = base + i
        if op == CONST:
            put_const(m, z, tape.value[i])
            continue
        if op == INPUT:
            copy_row(m, z, inputs + tape.first[i])
            continue
        if op == UNKNOWN:
            put_unknown(m, z)
            continue
        x = base + tape.first[i]
        y = base + tape.second[i]
        has_second = op != INTERP and tape.second[i] >= 0
        if not is_bounded(m, x) or (has_second and not is_bounded(m, y)):
            put_unknown(m, z)
            continue
        if op == ADD:
            put_sum(m, z, x, y, 1.0)
        elif op == SUB:
            put_sum(m, z, x, y, -1.0)
        elif op == MUL:
            put_product(m, z, x, y)
        elif op == DIV:
            put_quotient(m, z, x, y, work)
        elif op == NEG:
            put_negative(m, z, x)
        elif op == MAX:
            put_max(m, z, x, y, work)
        elif op == MIN:
            put_min(m, z, x, y, work)
        elif op == ABS:
            put_negative(m, work + 4, x)
            put_max(m, z, x, work + 4, work)
        elif op == SQUARE:
            put_square(m, z, x)
        elif op == SIN:
            put_wave(m, z, x, 0.0)
        elif op == COS:
            put_wave(m, z, x, 0.5 * math.pi)
        elif op == ATAN2:
            put_atan2(m, z, x, y, work)
        elif op == FLOOR:
            put_interval(m, z, np.floor(m[x, LOW]), np.floor(m[x, HIGH]))
        elif op == MOD:
            put_mod(m, z, x, tape.value[tape.second[i]])
        elif op == FMOD:
            put_fmod(m, z, x, tape.value[tape.second[i]])
        elif op == INTERP:
            put_interp(m, z, x, tape.tables, tape.second[i])
        elif op == SINGLE:
            put_single(m, z, x)
        else:
            put_function(m, z, x, op)


@njit_in_place
def find_paths(tape: TapeArrays, m: Floats, base: int, ends: Ints, stack: Ints) -> int:
    """Write the nodes that end the paths which sets may take; returns how many, or -1.

    It is -1 if there is no room, or if a compared row is unbounded: then it may also be NaN.
    """
    count = 0
    top = 1
    stack[0] = 0
    while top > 0:
        top -= 1
        node = stack[top]
        kind = tape.branch[node, 0]
        if kind < 0:
            if count >= ends.shape[0]:
                return -1
            ends[count] = node
            count += 1
            continue
        x = base + tape.branch[node, 1]
        y = base + tape.branch[node, 2]
        a = m[x, LOW]
        b = m[x, HIGH]
        c = m[y, LOW]
        d = m[y, HIGH]
        if not (is_bounded(m, x) and is_bounded(m, y)) or top + 2 > stack.shape[0]:
            return -1
        if kind == LESS:
            yes = a < d
            no = b >= c
        elif kind == LESS_EQUAL:
            yes = a <= d
            no = b > c
        else:
            yes = a <= d and c <= b
            no = not (a == b == c == d)
        if yes:
            stack[top] = tape.branch[node, 3]
            top += 1
        if no:
            stack[top] = tape.branch[node, 4]
            top += 1
    return count


@njit_in_place
def forget_cuts(e: Floats) -> None:
    """Let all symbols range over [-1, 1]."""
    for k in range(e.shape[1]):
        e[0, k] = -1.0
        e[1, k] = 1.0


@njit_in_place
def cut(m: Floats, g: int, e: Floats) -> bool:
    """Narrow the ranges of the symbols to where g <= 0 is possible; returns whether it is anywhere.

    `least` is the smallest value of g over the ranges. It is a sum of rounded terms, in error by much less
    than 64 EPS of their size, and is kept up to date as one range after the other is narrowed.
    """
    if m[g, LOW] > 0.0:
        return False
    if m[g, HIGH] <= 0.0 or not math.isfinite(m[g, R]):
        return True
    least = m[g, C] - m[g, R]
    size = abs(m[g, C]) + spread(m, g)
    for k in range(e.shape[1]):
        slope = m[g, A + k]
        least += min(slope * e[0, k], slope * e[1, k])
    if least > 64 * EPS * size:
        return False
    for k in range(e.shape[1]):
        slope = m[g, A + k]
        if slope == 0.0:
            continue
        own = min(slope * e[0, k], slope * e[1, k])
        # slope * e <= room for the points that are left
        room = own - least + 64 * EPS * size
        if slope > 0.0:
            e[1, k] = min(e[1, k], up(room / slope) + 4 * EPS)
        else:
            e[0, k] = max(e[0, k], down(room / slope) - 4 * EPS)
        if not e[0, k] <= e[1, k]:
            return False
        least += min(slope * e[0, k], slope * e[1, k]) - own
    return True


@njit_in_place
def apply_cuts(m: Floats, first: int, count: int, e: Floats) -> None:
    """Replace the symbols of some rows by others, over the ranges that are left."""
    for k in range(e.shape[1]):
        if e[0, k] <= -1.0 and e[1, k] >= 1.0:
            continue
        mid = 0.5 * (e[0, k] + e[1, k])
        half = up(max(up(e[1, k] - mid), up(mid - e[0, k]))) + 4 * EPS
        for z in range(first, first + count):
            if m[z, A + k] != 0.0:
                m[z, C] += m[z, A + k] * mid
                m[z, R] += 16 * EPS * (abs(m[z, C]) + abs(m[z, A + k]))
                m[z, A + k] *= half
    for z in range(first, first + count):
        settle(m, z, m[z, LOW], m[z, HIGH])


@njit_in_place
def cut_to_path(tape: TapeArrays, m: Floats, base: int, end: int, first: int, e: Floats, work: int) -> bool:
    """Keep of the outputs of a path, in the rows from `first` on, what its conditions leave possible.

    Returns whether anything is.
    """
    forget_cuts(e)
    child = end
    leaf = tape.branch[end, 5]
    count = tape.outputs.shape[1]
    node = tape.branch[child, 6]
    while node >= 0:
        kind = tape.branch[node, 0]
        yes = tape.branch[node, 3] == child
        x = base + tape.branch[node, 1]
        y = base + tape.branch[node, 2]
        for side in range(2):
            # The smaller number and the larger one: both ways for an equality, neither for an inequality.
            if (kind == EQUAL and not yes) or (kind != EQUAL and side == 1):
                continue
            swapped = side == 1 if kind == EQUAL else not yes
            small, large = (y, x) if swapped else (x, y)
            put_sum(m, work, small, large, -1.0)
            if not cut(m, work, e):
                return False
            for j in range(count):
                row = base + tape.outputs[leaf, j]
                z = first + j
                if row == small:
                    m[z, HIGH] = min(m[z, HIGH], m[large, HIGH])
                if row == large:
                    m[z, LOW] = max(m[z, LOW], m[small, LOW])
                if not m[z, LOW] <= m[z, HIGH]:
                    return False
        child = node
        node = tape.branch[child, 6]
    apply_cuts(m, first, count, e)
    return True
