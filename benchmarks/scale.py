"""What grows with runs and steps: `python benchmarks/scale.py`.

docs/scale.md tells what follows from it. Times are CPU seconds, which depend less on how busy the machine is
than time on the clock does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

import numpy as np

import spaql
from spaql.plugins.sweeps.store import RunStore
from studies import Row, parser, show


def cpu_seconds(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of this process and of those that it waited for."""

    def used() -> float:
        both = (getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))
        return sum(one.ru_utime + one.ru_stime for one in both)

    began = used()
    work()
    return used() - began


def command(*words: str) -> Row:
    """Run a command of spaql: its CPU seconds, and its peak memory in MB."""
    process = subprocess.Popen([sys.executable, "-m", "spaql", *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return {"cpu": used.ru_utime + used.ru_stime, "mb": used.ru_maxrss / 1024}


def store(n: int) -> Row:
    """Measure the commands over a store of n finished runs: copies of a real one under their own ids."""
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study.toml"
        root = Path(folder) / "store"
        study.write_text(
            f'problems = ["cartpole200"]\nalgorithms = ["spaql"]\nseeds = {n // 10}\niterations = 2\n'
            f"[grid]\nscaling = {list(range(1, 11))}\n"
        )
        runs = spaql.read_study(study)
        found = RunStore(root)
        spaql.sweep(runs[:1], root, workers=1, progress_bar=False)
        files = {path.name: path.read_bytes() for path in found.folder(runs[0]).iterdir()}
        result = json.loads(files["result.json"])
        for run in runs[1:]:
            found.folder(run).mkdir(parents=True)
            files["result.json"] = json.dumps(result | {"run": run.as_data()}).encode()
            for name, content in files.items():
                (found.folder(run) / name).write_bytes(content)
        row: Row = {"runs": n}
        csv = str(Path(folder) / "runs.csv")
        for name, words in (
            ("study results", [str(root), "--csv", csv]),
            ("study run", [str(study), "--out", str(root)]),
        ):
            row |= {f"{name}, {part}": x for part, x in command(*name.split(), *words).items()}
        return row


def search(steps: int) -> Row:
    """Search a controller of Pendulum with TreeSearch."""
    agent = spaql.TreeSearch("Pendulum-v1", seed=0)
    seconds = cpu_seconds(lambda: agent.learn(steps, progress_bar=False))
    taken = agent.training_steps
    return {"steps": taken, "cpu": seconds, "µs a step": 1e6 * seconds / taken}


def exponents(rows: list[Row]) -> Row:
    """Return by which power each number grows with the size, the first number of a row.

    It is that of the increase over the first row, so that a cost that is the same at every size, such as a
    start, does not count.
    """
    named = [{name: x for name, x in row.items() if not isinstance(x, str)} for row in rows]
    size, *others = named[0]
    if len(rows) < 3 or not named[0][size] < named[-2][size] < named[-1][size]:
        return {}
    grown = {name: [row[name] - named[0][name] for row in named[-2:] if name in row] for name in named[0]}
    ratio = np.log(grown[size][1] / grown[size][0])
    return {
        name: float(np.log(grown[name][1] / grown[name][0]) / ratio)
        for name in others
        if len(grown[name]) == 2 and min(grown[name]) > 0
    }


def main() -> None:
    """Measure what was asked for."""
    sizes = {
        "store": (store, (1_000, 10_000, 100_000)),
        "search": (search, (10**5, 10**6, 10**7, 10**8)),
    }
    options = parser(__doc__)
    options.add_argument("--small", action="store_true", help="everything small, to see that it works")
    options.add_argument("--only", action="append", choices=sizes, help="may be repeated")
    options.add_argument("--json", action="store_true", help="print one object")
    given = options.parse_args()
    found = {}
    for title in given.only or sizes:
        work, counts = sizes[title]
        work(counts[0] // 100)  # compiles
        found[title] = [work(n // 100 if given.small else n) for n in counts]
        if not given.json:
            print(title)
            show(found[title])
            print("exponents:", {name: round(power, 2) for name, power in exponents(found[title]).items()})
    if given.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
