"""What `spaql verify` proves, and whether it may be believed: `runs`, `fuzz` and `faults`.

    python benchmarks/verify.py runs runs/pendulum-*
    python benchmarks/verify.py fuzz --seeds 0-9999 --out verify-fuzz.jsonl
    python benchmarks/verify.py faults --out verify-faults.jsonl [--by tests] [--only TEXT]

`runs` prints a row for each trained controller: leaves, proven, refuted and undecided shares of all states,
the most steps that are needed, and a counterexample.

`fuzz` proves random plants of everything that Numba accepts, one for each seed, and plays them, compiled,
from proven states (`tests/plant_fuzzer.py`). A contradiction is printed with the source of the plant.

`faults` plants faults in the arithmetic, the cuts and the tracer: each is one replacement in a copy of the
sources, and has a number, by which --seeds chooses. The tests of sets, closed loops and tapes are run on it
without compilation, so that a fault takes seconds; what they do not find is left to the plants of
`tests/verify/test_false_proofs.py` and the fuzzer (`tests/verify/test_fuzz.py`), which stop at the first.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import spaql
from studies import TESTS, Row, groups, parser, run, show

ROOT = Path(__file__).parents[1]
TESTED = (
    "tests/kernels/test_verify_sets.py",
    "tests/verify/test_closed_loop.py",
    "tests/verify/test_trace.py",
)
OF_WHOLE_PROOFS = (
    "tests/plugins/certificates/test_certificate.py::test_what_is_not_left_in_some_steps_is_confirmed",
    "tests/verify/test_verify.py::test_states_that_are_not_left_in_some_steps",
)
"""The tests of searches and of the checker."""
NOT_UNCOMPILED = (
    *("many_boxes", "ten_million", "helpers_arrays_tables_and_loops", "is_not_proven", "refuted_where"),
    *("or_they_are_not_known", "implied_by", "up_to_whole_turns", "overflow", "numba_compiles"),
)
"""What is too long, or where Python refuses the root of a negative number, for which Numba returns NaN."""
MEANS = {"tests": "", "proofs": "tests/verify/test_false_proofs.py", "fuzzer": "tests/verify/test_fuzz.py"}
"""What may find a fault; the last two play compiled plants."""


def of_run(case: Row) -> Row:
    """Return what is proven of a run."""
    agent = spaql.load(case["run"])
    verdict = spaql.verify(agent, seconds=case["limit"])
    found = verdict.counterexample
    row: Row = {"leaves": agent.policy.n_leaves, "numbers": len(verdict.names)}
    row |= {share: f"{getattr(verdict, share):.3%}" for share in ("proven", "refuted", "undecided")}
    row |= {"longest": verdict.longest, "counterexample": None if found is None else list(found.start)}
    return row | {"seconds": round(verdict.seconds, 1)}


def runs(given: argparse.Namespace) -> None:
    """Print a row for each run."""
    given.processes = 1
    given.out = None
    show(run(of_run, [{"run": str(one), "limit": given.seconds} for one in given.runs], given))


def of_plant(case: Row) -> Row:
    """Return what is found of a random plant."""
    sys.path.append(TESTS)
    from plant_fuzzer import examined

    warnings.simplefilter("ignore")
    try:
        outcome = examined(case["plant"])
    except Exception as error:  # a crash is a finding, too
        return {"kind": "crash", "proven": 0.0, "said": f"{type(error).__name__}: {error}"}
    said = f"{outcome.said}\n{outcome.case.source}" if outcome.kind == "contradicted" else outcome.said
    return {"kind": outcome.kind, "proven": outcome.proven, "said": said}


def fuzz(given: argparse.Namespace) -> None:
    """Print how many plants were found to be what."""
    rows = run(of_plant, [{"plant": number} for number in given.seeds], given)
    for row in rows:
        if row["kind"] in ("contradicted", "crash"):
            print(f"{row['plant']}: {row['kind']}: {row['said']}")
    show([{"outcome": kind, "plants": len(some)} for (kind,), some in groups(rows, "kind").items()])


def of_fault(case: Row) -> Row:
    """Return what finds a fault in a copy of the sources."""
    source = (ROOT / "src" / "spaql" / case["file"]).read_text()
    if case["old"] not in source:
        return {"found": "stale", "said": "the source has changed: the fault does not apply"}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", folder, dirs_exist_ok=True)
        changed = source.replace(case["old"], case["new"], 1)
        (Path(folder) / "spaql" / case["file"]).write_text(changed)
        for means in case["by"]:
            if said := _failing(folder, case["file"], MEANS[means]):
                return {"found": means, "said": said}
    return {"found": "NOT FOUND", "said": ""}


def _failing(folder: str, file: str, compiled: str) -> str:
    """Return the first test that fails, and nothing if none does."""
    paths = [folder, *os.environ.get("PYTHONPATH", "").split(os.pathsep)[1:]]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-W", "ignore", "-p", "no:cacheprovider"]
    if compiled:
        command.append(compiled)
    else:
        env["NUMBA_DISABLE_JIT"] = "1"
        ordered = TESTED[::-1] if file.startswith("verify") else TESTED
        command += OF_WHOLE_PROOFS if file.endswith(("search.py", "check_cells.py")) else ordered
        command += ["-k", " and ".join(f"not {name}" for name in NOT_UNCOMPILED)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    last = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return last[0].split(" ")[1].rpartition("::")[2] if done.returncode else ""


def faults(given: argparse.Namespace) -> None:
    """Print how many faults of each file are found by what."""
    cases = [
        {"file": file, "old": old, "new": new, "by": given.by or list(MEANS)}
        for file, replaced in FAULTS.items()
        for old, news in replaced.items()
        for new in ((news,) if isinstance(news, str) else news)
        if given.only in file
    ]
    chosen = [case for number, case in enumerate(cases) if number in given.seeds]
    lines = []
    for (file,), some in groups(run(of_fault, chosen, given), "file").items():
        counts = Counter(row["found"] for row in some)
        lines.append({"file": file} | {name: counts[name] for name in (*MEANS, "stale", "NOT FOUND")})
    show(lines)


def main() -> None:
    """Do what was asked for."""
    options = parser(__doc__)
    parts = options.add_subparsers(required=True)
    one = parts.add_parser("runs")
    one.add_argument("runs", nargs="+", type=Path)
    one.add_argument("--seconds", type=float, default=60.0)
    one.set_defaults(part=runs)
    for part in (fuzz, faults):
        one = parts.add_parser(part.__name__, parents=[parser(None, seeds="0-9999")], add_help=False)
        one.set_defaults(part=part)
    one.add_argument("--by", action="append", choices=MEANS)
    one.add_argument("--only", default="", help="faults of files whose name has this text")
    given = options.parse_args()
    given.part(given)


# ruff: noqa: E501
FAULTS: dict[str, dict[str, str | tuple[str, ...]]] = {
    "kernels/verify/forms.py": {
        "return x - (abs(x) * EPS + TINY)": "return x",
        "return x + (abs(x) * EPS + TINY)": "return x",
        "m[z, R] += 16 * EPS * size + TINY": "pass",
        "total += abs(m[z, k])": "total += m[z, k]",
        "m[z, HIGH] = min(high, form_high)": "m[z, HIGH] = min(low, form_high)",
        "r = m[x, R] + m[y, R]": "r = m[x, R]",
        "low = down(m[x, LOW] - m[y, HIGH])": "low = down(m[x, LOW] - m[y, LOW])",
        "high = up(m[x, HIGH] - m[y, LOW])": "high = up(m[x, HIGH] - m[y, HIGH])",
        "m[z, k] = m[x, k] + sign * m[y, k]": "m[z, k] = m[x, k] + m[y, k]",
        "+ abs(cy) * m[x, R] + sx * sy": "+ abs(cy) * m[x, R]",
        "m[z, k] = cx * m[y, k] + cy * m[x, k]": "m[z, k] = cx * m[y, k] - cy * m[x, k]",
        "min(a, b), min(c, d))), up(max(max(a, b), max(c, d))))\n\n\n@njit_in_place\ndef put_square": "a, b)), up(max(c, d)))\n\n\n@njit_in_place\ndef put_square",
        "least = 0.0 if low <= 0.0 <= high else": "least =",
        "m[z, C] = c * c + 0.5 * s * s": "m[z, C] = c * c",
        "m[z, R] = abs(slope) * m[x, R] + error": "m[z, R] = abs(slope) * m[x, R]",
        "low = -m[x, HIGH]\n    high = -m[x, LOW]": "low = -m[x, LOW]\n    high = -m[x, HIGH]",
        "if m[x, LOW] >= m[y, HIGH]:\n        copy_row(m, z, x)": "if m[x, LOW] >= m[y, LOW]:\n        copy_row(m, z, x)",
        "slope = b / (b - a)": "slope = a / (a - b)",
        "0.5 * gap * (1.0 + 8 * EPS)": "0.25 * gap",
        "copy_row(m, z, y)\n    else:": "copy_row(m, z, x)\n    else:",
        "put_negative(m, z, work + 3)": "copy_row(m, z, work + 3)",
        "if holds_extreme(a, b, 0.5 * math.pi - phase):\n        high = 1.0": "pass",
        "if holds_extreme(a, b, -0.5 * math.pi - phase):\n        low = -1.0": "pass",
        "slope = math.cos(mid) if phase == 0.0 else -math.sin(mid)": "slope = math.cos(mid) if phase == 0.0 else math.sin(mid)",
        "error = 0.5 * rad * rad * bend * (1 + 16 * EPS)": "error = 0.05 * rad * rad * bend",
        "if not (low > 0.0 or high < 0.0) or not": "if not",
        "error = rad * rad / (least * least * least)": "error = 0.1 * rad * rad / (least * least * least)",
        "m[z, R] += SINGLE_EPS * size + SINGLE_TINY": "pass",
        "m[z, R] = apart + max(m[z, R], m[x, R])": "m[z, R] = max(m[z, R], m[x, R])",
        "if m[x, LOW] >= 0.0 and m[y, LOW] >= 0.0:": "if m[x, HIGH] >= 0.0 and m[y, HIGH] >= 0.0:",
        "if not (low > -SINGLE_MOST and high < SINGLE_MOST):": "if False:",
        "put_interval(m, z, -math.inf, math.inf)": "put_interval(m, z, -1.0, 1.0)",
    },
    "kernels/verify/sets.py": {
        "bend = last": "bend = first",
        "bend = 0.65": "bend = 0.1",
        "slope = 1.0 - value * value": "slope = 1.0 + value * value",
        "(x_low > 0.0 or y_low > 0.0 or y_high < 0.0)": "True",
        "error = 0.5 * (rv * rv + ru * ru) / least": "error = 0.01 * (rv * rv + ru * ru) / least",
        "if low == high and abs(low) < MOST_TURNS:\n        put_affine(m, z, x, 1.0, -low * period, 8 * EPS * (abs(low) + 1.0)": "if True:\n        put_affine(m, z, x, 1.0, -low * period, 8 * EPS * (abs(low) + 1.0)",
        "bottom = -period if a < 0.0 else 0.0": "bottom = 0.0",
        "error = 0.5 * (above - below) + slack": "error = slack",
        "np.floor(m[x, LOW]), np.floor(m[x, HIGH])": "np.floor(m[x, LOW]), np.floor(m[x, LOW])",
        "no = b >= c": "no = b > d",
        "yes = a <= d\n            no = b > c": "yes = b <= c\n            no = b > c",
        "if no:\n            stack[top]": "if no and not yes:\n            stack[top]",
        "e[1, k] = min(e[1, k], up(room / slope) + 4 * EPS)": "e[1, k] = min(e[1, k], 0.5 * room / slope)",
        "m[z, C] += m[z, A + k] * mid": "m[z, C] -= m[z, A + k] * mid",
        "swapped = side == 1 if kind == EQUAL else not yes": "swapped = side == 1 if kind == EQUAL else yes",
        "m[z, A + k] *= half": "m[z, A + k] *= 0.9 * half",
        "if not is_bounded(m, x) or (has_second and not is_bounded(m, y)):": (
            "if not is_bounded(m, x):",
            "if False:",
        ),
        "if not (is_bounded(m, x) and is_bounded(m, y)) or top": "if top",
        "(op == SQRT and not low >= 0.0)": "(op == SQRT and not high >= 0.0)",
        "(op == LOG and not low > 0.0)": "(op == LOG and not high > 0.0)",
        "or (has_second and not is_bounded(m, y))": "",
        "outside = (op == SQRT and not low >= 0.0) or": "outside =",
    },
    "kernels/verify/closed_loop.py": {
        "rest += abs(m[z, k])": "pass",
        "sign = -1.0 if side == 0 else 1.0": "sign = 1.0 if side == 0 else -1.0",
        "if upper:\n            stack[top] = tree.right[node]": "if upper and not lower:\n            stack[top] = tree.right[node]",
        "put_min(m, action + i, action + i, work + 4, work)": "pass",
        "put_single(m, observed + j, observed + j)": "pass",
        "action + other, action + choice, -1.0": "action + choice, action + other, -1.0",
        "m[observed + j, R] += noise[j]": "pass",
        "bound - slack)": "bound + 0.01)",
        "if not is_bounded(m, rows + tape.outputs[leaf, j]):": "if False:",
        "if not is_bounded(m, action + i):": "if False:",
        "if not is_bounded(m, observed + j):": "if False:",
    },
    "program/recorder.py": {
        "return True if a[1] < b[0] else False if a[0] >= b[1] else None": "return True if a[1] < b[1] else None",
        "if condition == (kind, first, second):": "if condition[1:] == (first, second):",
        "return 0.0, max(a[0] * a[0], a[1] * a[1])": "return 0.0, a[1] * a[1]",
        "return 0.0, b[1]": "return 0.0, 0.5 * b[1]",
        "return float(np.floor(a[0])), float(np.floor(a[1]))": "return (float(np.floor(a[1])),) * 2",
        "return max(0.0, a[0], -a[1]), max(-a[0], a[1])": "return max(0.0, a[0], -a[1]), a[1]",
        "return min(a[0], b[0]), min(a[1], b[1])": "return max(a[0], b[0]), min(a[1], b[1])",
        "return a[0] - b[1], a[1] - b[0]": "return a[0] - b[0], a[1] - b[1]",
        "self._range[first] = a[0], min(a[1], b[1])": "self._range[first] = max(a[0], b[0]), a[1]",
        "if not self._is_number(first) or not self._is_number(second):": "if False:",
        'row in self._compared or self.rows[row][0] in ("const", "input")': "True",
        "self._decide((kind, first, second), settled, settled=True)": "pass",
    },
    "program/ir.py": {
        'return self.operated("-", other, self)': 'return self.operated("-", self, other)',
    },
    "program/symbols.py": {
        "result = base if result is None else": "result =",
        "_adapted(operand) if adapts else operand.row": "operand.row",
        'row if exact else record("single", row)': "row",
        'record("single", record(name, *adapted))': "record(name, *adapted)",
        '"double" in kinds and operation.typed': '"double" in kinds',
        'return _compared("<", lifted(other), self)': 'return _compared("<", self, lifted(other))',
        'return _compared("<=", self, lifted(other))': 'return _compared("<", self, lifted(other))',
        'return not _compared("==", self, lifted(other))': 'return _compared("==", self, lifted(other))',
        "range(math.ceil(low), math.floor(high))": "range(math.ceil(low) + 1, math.floor(high))",
        "result if power > 0 else apply": "result if power != 0 else apply",
        "not 0.0 < float(x) < math.inf": "not float(x) < math.inf",
        'RECORDERS[-1].require("<=", self.row, lifted(math.floor(high)).row)': "pass",
        "if low < -WHOLE_MOST:": "if False:",
        "if high > WHOLE_MOST:": "if False:",
        '(bool | int | np.bool_ | np.int64, "whole")': '(bool | int | np.bool_ | np.int64, "literal")',
        'if kinds == {"whole"} and operation.whole:': 'if "whole" in kinds and operation.whole:',
        'if self.precision != "whole":': "if False:",
    },
    "program/tape.py": {
        "visit(yes, number), visit(no, number)": "visit(no, number), visit(yes, number)",
    },
    "verify/closed_loop.py": {
        "return abs(turns) < 100 and abs(turns - round(turns)) < 1e-12": "return True",
    },
    "kernels/verify/search.py": {
        "(time >= 0 or age + 1 >= rules.limit)": "(time >= 0 or age + 2 >= rules.limit)",
    },
    "plugins/certificates/check_cells.py": {
        "done |= age >= self._claim.limit": "done |= age + 1 >= self._claim.limit",
        "if kind in (NEVER, REACHES, STAYS):": "if True:",
    },
    "problems/tapes.py": {
        "waiting + 0.5, 0.0": "waiting + 0.4, 0.0",
    },
    "program/trace.py": {
        'return "" if name in _KNOWN else': 'return "" if name in _KNOWN or name in ("PUSH_EXC_INFO", "CHECK_EXC_MATCH", "POP_EXCEPT") else',
        'refused = [name for name in ("fastmath", "parallel") if options.get(name)]': "refused = []",
        'refused += ["locals"] if function.locals else []': "pass",
        "if stores is not None and lists:": "if False:",
        "if _has_list((arguments, tuple(named.values()), result)):": "if False:",
        '"" if name in _KNOWN else _CALLED.get(name, name)': '""',
        'return "" if operator in _OPERATORS else': 'return "" if True else',
        "ended = bool(flag)": "ended = False",
        'rows = (recorder.row("unknown"),) * outputs': "rows = (0,) * outputs",
        "return yes if yes == no else": "return yes if yes[0] == no[0] else",
        "if side else lost for side in sides": "if side else _decision_tree(paths, depth + 1, lost) for side in sides",
        'raise unknown_function(getattr(value, "__name__", repr(value)))': "return value",
        "waiting.append([*answers[:n], not answers[n]])": "pass",
    },
    "program/shims.py": {
        "return _rounded_down(x) if x >= 0.0 else -_rounded_down(-x)": "return _rounded_down(x)",
        "if x >= 0.0 else -_rounded_down(-x)": "if x <= 0.0 else -_rounded_down(-x)",
        "if dtype not in (None, _double, _float):": "if False:",
        '"empty": _filled(math.nan)': '"empty": _filled(0.0)',
        "return lifted(np.float32(x))": "return lifted(x)",
        "else (-1.0 if x < 0.0 else 0.0)": "else -1.0",
        "lambda x: -_rounded_down(-x), math.ceil": "_rounded_down, math.ceil",
        "_float(abs(x) * math.copysign(1.0, y))": "_float(x * math.copysign(1.0, y))",
        "for x in values[1:]:": "for x in values[1:2]:",
        "lifted(x * x + y * y)": "lifted(x * x - y * y)",
        'raise unknown_function(f"{module.__name__}.{name}")': "return value",
        "if x >= 0.0 else -_rounded_down": "if x <= 0.0 else -_rounded_down",
        '"int64": _whole,': '"int64": _double,',
    },
    "program/arrays.py": {
        'Array(objects, "it holds whole numbers; write them as floats, such as 1.0")': "Array(objects)",
        "if self._frozen:": "if False:",
        'if "single" in kinds:': "if False:",
        "return array_of(self)": "return self",
        "self[...] = self - other": "self[...] = self + other",
        '"" if floats else': '"" if True else',
    },
}


if __name__ == "__main__":
    main()
