"""Plant faults in the arithmetic, the cuts and the tracer of `spaql.verify`: do the tests find them?

    python benchmarks/verify_faults.py [FIRST]

Each fault is one replacement in a copy of the sources. The tests of sets, closed loops and tapes are run on
it without compilation, so that a fault takes seconds.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
FORMS, SETS, LOOP, SEARCH = (
    f"kernels/verify/{name}.py" for name in ("forms", "sets", "closed_loop", "search")
)
SYMBOLS, TRACE, SHIMS, TAPE, ANALYSIS, COORDINATES, CHECK, ARRAYS, READING = (
    f"verify/{name}.py"
    for name in "symbols trace shims tape analysis coordinates check arrays reading".split()  # noqa: SIM905
)
# ruff: noqa: E501
FAULTS = [
    (FORMS, "return x - (abs(x) * EPS + TINY)", "return x"),
    (FORMS, "return x + (abs(x) * EPS + TINY)", "return x"),
    (FORMS, "m[z, R] += 16 * EPS * size + TINY", "pass"),
    (FORMS, "total += abs(m[z, k])", "total += m[z, k]"),
    (FORMS, "max(low, form_low), min(high, form_high)", "max(low, form_low), min(low, form_high)"),
    (FORMS, "r = m[x, R] + m[y, R]", "r = m[x, R]"),
    (
        FORMS,
        "down(m[x, LOW] - m[y, HIGH]), up(m[x, HIGH] - m[y, LOW])",
        "down(m[x, LOW] - m[y, LOW]), up(m[x, HIGH] - m[y, HIGH])",
    ),
    (FORMS, "m[z, k] = m[x, k] + sign * m[y, k]", "m[z, k] = m[x, k] + m[y, k]"),
    (FORMS, "+ abs(cy) * m[x, R] + sx * sy", "+ abs(cy) * m[x, R]"),
    (FORMS, "m[z, k] = cx * m[y, k] + cy * m[x, k]", "m[z, k] = cx * m[y, k] - cy * m[x, k]"),
    (
        FORMS,
        "min(a, b), min(c, d))), up(max(max(a, b), max(c, d))))\n\n\n@njit_in_place\ndef put_square",
        "a, b)), up(max(c, d)))\n\n\n@njit_in_place\ndef put_square",
    ),
    (FORMS, "least = 0.0 if low <= 0.0 <= high else", "least ="),
    (FORMS, "m[z, C] = c * c + 0.5 * s * s", "m[z, C] = c * c"),
    (FORMS, "m[z, R] = abs(slope) * m[x, R] + error", "m[z, R] = abs(slope) * m[x, R]"),
    (FORMS, "low, high = -m[x, HIGH], -m[x, LOW]", "low, high = -m[x, LOW], -m[x, HIGH]"),
    (
        FORMS,
        "if m[x, LOW] >= m[y, HIGH]:\n        copy_row(m, z, x)",
        "if m[x, LOW] >= m[y, LOW]:\n        copy_row(m, z, x)",
    ),
    (FORMS, "slope = b / (b - a)", "slope = a / (a - b)"),
    (FORMS, "0.5 * gap * (1.0 + 8 * EPS)", "0.25 * gap"),
    (FORMS, "copy_row(m, z, y)\n    else:", "copy_row(m, z, x)\n    else:"),
    (FORMS, "put_negative(m, z, work + 3)", "copy_row(m, z, work + 3)"),
    (FORMS, "if holds_extreme(a, b, 0.5 * math.pi - phase):\n        high = 1.0", "pass"),
    (FORMS, "if holds_extreme(a, b, -0.5 * math.pi - phase):\n        low = -1.0", "pass"),
    (
        FORMS,
        "slope = math.cos(mid) if phase == 0.0 else -math.sin(mid)",
        "slope = math.cos(mid) if phase == 0.0 else math.sin(mid)",
    ),
    (FORMS, "error = 0.5 * rad * rad * bend * (1 + 16 * EPS)", "error = 0.05 * rad * rad * bend"),
    (FORMS, "if not (low > 0.0 or high < 0.0) or not", "if not"),
    (
        FORMS,
        "error = rad * rad / (least * least * least)",
        "error = 0.1 * rad * rad / (least * least * least)",
    ),
    (FORMS, "m[z, R] += SINGLE_EPS * size + SINGLE_TINY", "pass"),
    (FORMS, "m[z, R] = apart + max(m[z, R], m[x, R])", "m[z, R] = max(m[z, R], m[x, R])"),
    (SETS, "slope, bend = value, last", "slope, bend = value, first"),
    (SETS, "slope, bend = 1.0 / (1.0 + mid * mid), 0.65", "slope, bend = 1.0 / (1.0 + mid * mid), 0.1"),
    (SETS, "slope, bend = 1.0 - value * value, 0.77", "slope, bend = 1.0 + value * value, 0.77"),
    (SETS, "(x_low > 0.0 or y_low > 0.0 or y_high < 0.0)", "True"),
    (SETS, "error = 0.5 * (rv * rv + ru * ru) / least", "error = 0.01 * (rv * rv + ru * ru) / least"),
    (
        SETS,
        "if low == high and abs(low) < 1e6:\n        put_affine(m, z, x, 1.0, -low * period, 8 * EPS * (abs(low) + 1.0)",
        "if True:\n        put_affine(m, z, x, 1.0, -low * period, 8 * EPS * (abs(low) + 1.0)",
    ),
    (
        SETS,
        "bottom, top = -period if a < 0.0 else 0.0, period if b > 0.0 else 0.0",
        "bottom, top = 0.0, period",
    ),
    (SETS, "error = 0.5 * (above - below) + slack", "error = slack"),
    (SETS, "np.floor(m[x, LOW]), np.floor(m[x, HIGH])", "np.floor(m[x, LOW]), np.floor(m[x, LOW])"),
    (SETS, "yes, no = a < d, b >= c", "yes, no = a < d, b > d"),
    (SETS, "yes, no = a <= d, b > c", "yes, no = b <= c, b > c"),
    (SETS, "if no:\n            stack[top]", "if no and not yes:\n            stack[top]"),
    (
        SETS,
        "e[1, k] = min(e[1, k], up(room / slope) + 4 * EPS)",
        "e[1, k] = min(e[1, k], 0.5 * room / slope)",
    ),
    (SETS, "m[z, C] += m[z, A + k] * mid", "m[z, C] -= m[z, A + k] * mid"),
    (
        SETS,
        "swapped = side == 1 if kind == EQUAL else not yes",
        "swapped = side == 1 if kind == EQUAL else yes",
    ),
    (SETS, "m[z, A + k] *= half", "m[z, A + k] *= 0.9 * half"),
    (LOOP, "rest += abs(m[z, k])", "pass"),
    (LOOP, "sign = -1.0 if side == 0 else 1.0", "sign = 1.0 if side == 0 else -1.0"),
    (
        LOOP,
        "if upper:\n            stack[top] = tree.right[node]",
        "if upper and not lower:\n            stack[top] = tree.right[node]",
    ),
    (LOOP, "put_min(m, action + i, action + i, work + 4, work)", "pass"),
    (LOOP, "put_single(m, seen + j, seen + j)", "pass"),
    (LOOP, "action + other, action + choice, -1.0", "action + choice, action + other, -1.0"),
    (LOOP, "m[seen + j, R] += noise[j]", "pass"),
    (LOOP, "bound - slack)", "bound + 0.01)"),
    (SYMBOLS, 'return _compared("<", lifted(other), self)', 'return _compared("<", self, lifted(other))'),
    (
        SYMBOLS,
        "return True if a[1] < b[0] else False if a[0] >= b[1] else None",
        "return True if a[1] < b[1] else None",
    ),
    (SYMBOLS, 'return _operated("sub", other, self)', 'return _operated("sub", self, other)'),
    (SYMBOLS, "result = base if result is None else", "result ="),
    (SYMBOLS, "_adapted(operand) if adapts else operand.row", "operand.row"),
    (SYMBOLS, 'row if exact else record("single", row)', "row"),
    (SYMBOLS, 'record("single", record(name, *adapted))', "record(name, *adapted)"),
    (SYMBOLS, '"double" in kinds and name in _OPERATORS', '"double" in kinds'),
    (SHIMS, "if x >= 0.0 else -_rounded_down", "if x <= 0.0 else -_rounded_down"),
    (TRACE, "waiting.append([answer for _, answer, _ in decided[:n]] + [not given])", "pass"),
    (TAPE, "visit(yes, number), visit(no, number)", "visit(no, number), visit(yes, number)"),
    (TAPE, 'rows.append(("add", total, len(rows) - 1, 0.0))', "pass"),
    (TAPE, '(("<", row, constant(float(low))), (outputs, True), result)', "result"),
    (TAPE, '(("<", constant(float(high)), row), (outputs, True), result)', "result"),
    (COORDINATES, "np.abs(self.there) @ loop.push * (1.0 + 1e-9)", "loop.push"),
    (COORDINATES, "2.0 * FAR * _ERROR * wide", "0.0 * wide"),
    (COORDINATES, "if np.any(rest @ wide > _ERROR * wide):", "if False:"),
    (ANALYSIS, "return abs(turns) < 100 and abs(turns - round(turns)) < 1e-12", "return True"),
    (FORMS, "if m[x, LOW] >= 0.0 and m[y, LOW] >= 0.0:", "if m[x, HIGH] >= 0.0 and m[y, HIGH] >= 0.0:"),
    (SETS, "if not is_bounded(m, x) or (has_second and not is_bounded(m, y)):", "if False:"),
    (SETS, "or (has_second and not is_bounded(m, y))", ""),
    (SETS, "outside = (op == SQRT and not low >= 0.0) or", "outside ="),
    (FORMS, "if not (low > -SINGLE_MOST and high < SINGLE_MOST):", "if False:"),
    (LOOP, "if not is_bounded(m, rows + tape.outputs[leaf, j]):", "if False:"),
    (SYMBOLS, "self._decide((kind, first, second), settled, settled=True)", "pass"),
    (SYMBOLS, "if low < -WHOLE_MOST:", "if False:"),
    (SYMBOLS, "if high > WHOLE_MOST:", "if False:"),
    (SHIMS, '"int64": _whole,', '"int64": _double,'),
    (SHIMS, "if dtype not in (None, _double, _float):", "if False:"),
    (ARRAYS, "if self._frozen:", "if False:"),
    (ARRAYS, '"" if floats else', '"" if True else'),
    (READING, '"" if name in _KNOWN else _CALLED.get(name, name)', '""'),
    (READING, 'return "" if operator in _OPERATORS else', 'return "" if True else'),
    (READING, "if stores is not None and lists:", "if False:"),
    (READING, "if _has_list((given", "if False and _has_list((given"),
    (SEARCH, "(time >= 0 or age + 1 >= rules.limit)", "(time >= 0 or age + 2 >= rules.limit)"),
    (CHECK, "done |= age >= self._limit", "done |= age + 1 >= self._limit"),
    (
        CHECK,
        "if self._goal or self._lasts else self._within(self._home)",
        "if False else self._within(self._home)",
    ),
]
TESTS = (
    "tests/kernels/test_verify_sets.py",
    "tests/verify/test_closed_loop.py",
    "tests/verify/test_trace.py",
    "tests/verify/test_false_proofs.py",
)
OF_WHOLE_PROOFS = (
    "tests/verify/test_certificate.py::test_what_is_not_left_in_some_steps_is_confirmed",
    "tests/verify/test_verify.py::test_states_that_are_not_left_in_some_steps",
)
"""The tests of searches and of the checker."""
NOT_UNCOMPILED = (
    *("many_boxes", "ten_million", "helpers_arrays_tables_and_loops", "is_not_proven", "refuted_where"),
    *("or_they_are_not_known", "implied_by", "up_to_whole_turns", "overflow", "numba_compiles"),
)
"""What is too long, or where Python refuses the root of a negative number, for which Numba returns NaN."""


def found(file: str, old: str, new: str) -> str:
    """Return what the tests say of a fault."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(
            ROOT / "src", Path(folder) / "src", ignore=shutil.ignore_patterns("*.nb*", "__pycache__")
        )
        target = Path(folder) / "src" / "spaql" / file
        source = target.read_text()
        if source.count(old) < 1:
            return "the source has changed: the fault does not apply"
        target.write_text(source.replace(old, new, 1))
        paths = [str(Path(folder) / "src"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)[1:]]
        env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-W", "ignore", "-p", "no:cacheprovider"]
        if file in (SEARCH, CHECK):
            command += OF_WHOLE_PROOFS
        else:
            command += reversed(TESTS) if file.startswith("verify") else TESTS
        command += ["-k", " and ".join(f"not {name}" for name in NOT_UNCOMPILED)]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    last = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return f"found by {last[0].split(' ')[1].rpartition('::')[2]}" if done.returncode else "NOT FOUND"


def main() -> None:
    missed = 0
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    for number, fault in enumerate(FAULTS[first - 1 :], first):
        began = time.monotonic()
        said = found(*fault)
        missed += not said.startswith("found")
        print(
            f"{number:2} {fault[0]:32} {said}  ({time.monotonic() - began:.0f} s)  {fault[1][:50]!r}",
            flush=True,
        )
    print(f"{len(FAULTS) - first + 1 - missed} of {len(FAULTS) - first + 1} found")


if __name__ == "__main__":
    main()
