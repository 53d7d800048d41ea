"""Plant faults in the arithmetic, the cuts and the tracer of `spaql.verify`: are they found?

    python benchmarks/verify_faults.py [--by tests] [--by proofs] [--by fuzzer] [--only TEXT] [--out verify-faults.jsonl]

Each fault is one replacement in a copy of the sources. The tests of sets, closed loops and tapes are run on it
without compilation, so that a fault takes seconds; what they do not find is left to the plants of
`tests/verify/test_false_proofs.py` and the fuzzer (`tests/verify/test_fuzz.py`), which stop at the first. Faults that are in the file already are
not planted again, so the script can be stopped at any time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
FORMS, SETS, LOOP, SEARCH = (
    f"kernels/verify/{name}.py" for name in ("forms", "sets", "closed_loop", "search")
)
SYMBOLS, TRACE, SHIMS, TAPE, ANALYSIS, COORDINATES, CHECK, ARRAYS, READING = (
    f"verify/{name}.py"
    for name in "symbols trace shims tape analysis coordinates check_cells arrays reading".split()  # noqa: SIM905
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
    (TAPE, "visit(yes, number), visit(no, number)", "visit(no, number), visit(yes, number)"),
    (TAPE, 'rows.append(("add", total, len(rows) - 1, 0.0))', "pass"),
    (TAPE, '(("<", row, constant(float(low))), (outputs, True), result)', "result"),
    (TAPE, '(("<", constant(float(high)), row), (outputs, True), result)', "result"),
    (COORDINATES, "np.abs(self.there) @ loop.push * (1.0 + 1e-9)", "loop.push"),
    (COORDINATES, "2.0 * FAR * _ERROR * wide", "0.0 * wide"),
    (COORDINATES, "if np.any(rest @ wide > _ERROR * wide):", "if False:"),
    (ANALYSIS, "return abs(turns) < 100 and abs(turns - round(turns)) < 1e-12", "return True"),
    (FORMS, "if m[x, LOW] >= 0.0 and m[y, LOW] >= 0.0:", "if m[x, HIGH] >= 0.0 and m[y, HIGH] >= 0.0:"),
    (SEARCH, "(time >= 0 or age + 1 >= rules.limit)", "(time >= 0 or age + 2 >= rules.limit)"),
    (CHECK, "done |= age >= self._claim.limit", "done |= age + 1 >= self._claim.limit"),
    (CHECK, "if kind in (NEVER, REACHES, STAYS):", "if True:"),
    # Comparisons, and which paths there are.
    (SYMBOLS, 'return _compared("<", lifted(other), self)', 'return _compared("<", self, lifted(other))'),
    (SYMBOLS, 'return _compared("<=", self, lifted(other))', 'return _compared("<", self, lifted(other))'),
    (
        SYMBOLS,
        'return not _compared("==", self, lifted(other))',
        'return _compared("==", self, lifted(other))',
    ),
    (SYMBOLS, "if condition == (kind, first, second):", "if condition[1:] == (first, second):"),
    (SYMBOLS, "return 0.0, max(a[0] * a[0], a[1] * a[1])", "return 0.0, a[1] * a[1]"),
    (SYMBOLS, "return 0.0, b[1]", "return 0.0, 0.5 * b[1]"),
    (SYMBOLS, "return float(np.floor(a[0])), float(np.floor(a[1]))", "return (float(np.floor(a[1])),) * 2"),
    (SYMBOLS, "return max(0.0, a[0], -a[1]), max(-a[0], a[1])", "return max(0.0, a[0], -a[1]), a[1]"),
    (SYMBOLS, "return min(a[0], b[0]), min(a[1], b[1])", "return max(a[0], b[0]), min(a[1], b[1])"),
    (SYMBOLS, "return a[0] - b[1], a[1] - b[0]", "return a[0] - b[0], a[1] - b[1]"),
    (SYMBOLS, "self._range[first] = a[0], min(a[1], b[1])", "self._range[first] = max(a[0], b[0]), a[1]"),
    (SYMBOLS, "range(math.ceil(low), math.floor(high))", "range(math.ceil(low) + 1, math.floor(high))"),
    (SYMBOLS, "result if power > 0 else made", "result if power != 0 else made"),
    (SYMBOLS, "not 0.0 < float(x) < math.inf", "not float(x) < math.inf"),
    (TRACE, "ended = bool(flag)", "ended = False"),
    (
        TRACE,
        'rows, ended = (recorder.row("unknown"),) * outputs, False',
        "rows, ended = (0,) * outputs, False",
    ),
    (TRACE, "return yes if yes == no else", "return yes if yes[0] == no[0] else"),
    (TRACE, "low(waiting + 0.5, 0.0)", "low(waiting + 0.4, 0.0)"),
    # What may be NaN.
    (SYMBOLS, "if not self._is_number(first) or not self._is_number(second):", "if False:"),
    (SYMBOLS, 'row in self._compared or self.rows[row][0] in ("const", "input")', "True"),
    (SYMBOLS, 'RECORDERS[-1].require("<=", self.row, lifted(math.floor(high)).row)', "pass"),
    (
        TRACE,
        "if side else lost for side in sides",
        "if side else _decision_tree(paths, depth + 1, lost) for side in sides",
    ),
    (LOOP, "if not is_bounded(m, rows + tape.outputs[leaf, j]):", "if False:"),
    (LOOP, "if not is_bounded(m, action + i):", "if False:"),
    (LOOP, "if not is_bounded(m, seen + j):", "if False:"),
    (SETS, "if not is_bounded(m, x) or (has_second and not is_bounded(m, y)):", "if not is_bounded(m, x):"),
    (SETS, "if not is_bounded(m, x) or (has_second and not is_bounded(m, y)):", "if False:"),
    (SETS, "if not (is_bounded(m, x) and is_bounded(m, y)) or top", "if top"),
    (SETS, "(op == SQRT and not low >= 0.0)", "(op == SQRT and not high >= 0.0)"),
    (SETS, "(op == LOG and not low > 0.0)", "(op == LOG and not high > 0.0)"),
    (FORMS, "if not (low > -SINGLE_MOST and high < SINGLE_MOST):", "if False:"),
    (FORMS, "put_interval(m, z, -math.inf, math.inf)", "put_interval(m, z, -1.0, 1.0)"),
    # Types of numbers and of arrays.
    (SYMBOLS, "if low < -WHOLE_MOST:", "if False:"),
    (SYMBOLS, "if high > WHOLE_MOST:", "if False:"),
    (SYMBOLS, '(bool | int | np.bool_ | np.int64, "whole")', '(bool | int | np.bool_ | np.int64, "literal")'),
    (SYMBOLS, 'if kinds == {"whole"} and name in _OF_WHOLE:', 'if "whole" in kinds and name in _OF_WHOLE:'),
    (SHIMS, "return _rounded_down(x) if x >= 0.0 else -_rounded_down(-x)", "return _rounded_down(x)"),
    (SHIMS, "if x >= 0.0 else -_rounded_down(-x)", "if x <= 0.0 else -_rounded_down(-x)"),
    (SHIMS, "if dtype not in (None, _double, _float):", "if False:"),
    (SHIMS, '"empty": _filled(math.nan)', '"empty": _filled(0.0)'),
    (SHIMS, "return lifted(np.float32(x))", "return lifted(x)"),
    (ARRAYS, 'Array(found, "it holds whole numbers; write them as floats, such as 1.0")', "Array(found)"),
    (ARRAYS, "if self._frozen:", "if False:"),
    (ARRAYS, 'if "single" in kinds:', "if False:"),
    (ARRAYS, "return array_of(self)", "return self"),
    (ARRAYS, "self[...] = self - other", "self[...] = self + other"),
    # Functions.
    (SHIMS, "else (-1.0 if x < 0.0 else 0.0)", "else -1.0"),
    (SHIMS, "lambda x: -_rounded_down(-x), math.ceil", "_rounded_down, math.ceil"),
    (SHIMS, "_float(abs(x) * math.copysign(1.0, y))", "_float(x * math.copysign(1.0, y))"),
    (SHIMS, "for x in values[1:]:", "for x in values[1:2]:"),
    (SHIMS, "lifted(x * x + y * y)", "lifted(x * x - y * y)"),
    # What is executed at all.
    (
        READING,
        'return "" if name in _KNOWN else',
        'return "" if name in _KNOWN or name in ("PUSH_EXC_INFO", "CHECK_EXC_MATCH", "POP_EXCEPT") else',
    ),
    (READING, 'asked = [name for name in ("fastmath", "parallel") if options.get(name)]', "asked = []"),
    (READING, 'asked += ["locals"] if function.locals else []', "pass"),
    (READING, "if stores is not None and lists:", "if False:"),
    (READING, "if _has_list((given, tuple(named.values()), result)):", "if False:"),
    (TRACE, 'raise unknown_function(getattr(value, "__name__", repr(value)))', "return value"),
    (SHIMS, 'raise unknown_function(f"{module.__name__}.{name}")', "return value"),
    (SHIMS, "if x >= 0.0 else -_rounded_down", "if x <= 0.0 else -_rounded_down"),
    (TRACE, "waiting.append([answer for _, answer, _ in decided[:n]] + [not given])", "pass"),
    (SETS, "or (has_second and not is_bounded(m, y))", ""),
    (SETS, "outside = (op == SQRT and not low >= 0.0) or", "outside ="),
    (SYMBOLS, "self._decide((kind, first, second), settled, settled=True)", "pass"),
    (SYMBOLS, 'if self.precision != "whole":', "if False:"),
    (SHIMS, '"int64": _whole,', '"int64": _double,'),
    (ARRAYS, '"" if floats else', '"" if True else'),
    (READING, '"" if name in _KNOWN else _CALLED.get(name, name)', '""'),
    (READING, 'return "" if operator in _OPERATORS else', 'return "" if True else'),
]
TESTS = (
    "tests/kernels/test_verify_sets.py",
    "tests/verify/test_closed_loop.py",
    "tests/verify/test_trace.py",
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


COMPILED = {"proofs": "tests/verify/test_false_proofs.py", "fuzzer": "tests/verify/test_fuzz.py"}
"""Tests that play compiled plants."""
MEANS = ("tests", *COMPILED)


def planted(folder: Path, fault: tuple[str, str, str], by: list[str]) -> str:
    """Return what finds a fault in a copy of the sources, which is as before afterwards."""
    file, old, new = fault
    target = folder / "spaql" / file
    source = target.read_text()
    if old not in source:
        return "the source has changed: the fault does not apply"
    target.write_text(source.replace(old, new, 1))
    try:
        for means in by:
            if said := _tested(folder, file, COMPILED.get(means, "")):
                return f"{means}: {said}"
    finally:
        target.write_text(source)
    return "NOT FOUND"


def _tested(folder: Path, file: str, compiled: str) -> str:
    """Return the first test that fails, and nothing if none does."""
    paths = [str(folder), *os.environ.get("PYTHONPATH", "").split(os.pathsep)[1:]]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-W", "ignore", "-p", "no:cacheprovider"]
    if compiled:
        command.append(compiled)
    else:
        env["NUMBA_DISABLE_JIT"] = "1"
        ordered = reversed(TESTS) if file.startswith("verify") else TESTS
        command += OF_WHOLE_PROOFS if file in (SEARCH, CHECK) else ordered
        command += ["-k", " and ".join(f"not {name}" for name in NOT_UNCOMPILED)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    last = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return last[0].split(" ")[1].rpartition("::")[2] if done.returncode else ""


def table(records: list[dict[str, str]]) -> str:
    """Return how many faults of each file are found by what."""
    means = sorted({record["found"].partition(":")[0] for record in records})
    lines = [" ".join(f"{one:>12.12}" for one in means) + "  of"]
    for file in [*dict.fromkeys(record["file"] for record in records), ""]:
        own = [record for record in records if file in ("", record["file"])]
        counts = Counter(record["found"].partition(":")[0] for record in own)
        lines.append(" ".join(f"{counts[one]:12}" for one in means) + f" {len(own):3}  {file or 'all'}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--by", action="append", choices=MEANS)
    parser.add_argument("--only", default="", help="faults of files whose name has this text")
    parser.add_argument("--out", type=Path, default=Path("verify-faults.jsonl"))
    asked = parser.parse_args()
    records = [json.loads(line) for line in asked.out.read_text().splitlines()] if asked.out.exists() else []
    done = {(record["file"], record["old"], record["new"]) for record in records}
    todo = [fault for fault in FAULTS if fault not in done and asked.only in fault[0]]
    with tempfile.TemporaryDirectory() as name, asked.out.open("a", encoding="utf-8") as file:
        folder = Path(name) / "src"
        shutil.copytree(ROOT / "src", folder)
        for fault in todo:
            began = time.monotonic()
            said = planted(folder, fault, asked.by or [*MEANS])
            records.append({**dict(zip(("file", "old", "new"), fault, strict=True)), "found": said})
            file.write(json.dumps(records[-1]) + "\n")
            file.flush()
            print(f"{fault[0]:32} {said}  ({time.monotonic() - began:.0f} s)  {fault[1][:50]!r}", flush=True)
    print(table(records))


if __name__ == "__main__":
    main()
