"""A plant on the bench over a pseudo-terminal, in real time, with lost and late lines.

    python benchmarks/hardware.py --steps 100000

plays random actions on a simulated motor, whose board is a process of its own, and compares the log with what
the board knows: the jitter of both sides, how lost and late observations were answered, and rows that are not
in the log or differ. 100,000 steps at 100 Hz take 17 minutes, nearly all of them asleep.
"""

import argparse
import csv
import gc
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.problems.hardware import Counts, Hardware

sys.path.append(str(Path(__file__).parents[1] / "examples" / "bench"))
from simulated_board import SimulatedBoard

PLANT, SAFE, WATCHDOG = "spaql/DCMotor-v0", 0.0, 3


def board(given: argparse.Namespace) -> None:
    """Run the board until standard input ends; then write what it knows to a file."""
    gc.disable()  # the record grows, and looking through it would stop the clock of the board
    with SimulatedBoard(
        PLANT,
        sample_time=1.0 / given.rate,
        safe_action=SAFE,
        terminal=not given.tcp,
        watchdog=WATCHDOG,
        lost=given.lost,
        late=given.late,
        seed=given.seed,
    ) as simulated:
        print(json.dumps([simulated.port, simulated.observations, simulated.actions]), flush=True)
        sys.stdin.read()
    given.board.write_text(json.dumps([asdict(one) for one in simulated.record]), encoding="utf-8")


def run(given: argparse.Namespace, folder: Path) -> tuple[Counts, list[dict[str, str]], list[dict[str, Any]]]:
    """Play an episode, and return the counts, the rows of the log, and what the board knows."""
    words = [sys.executable, __file__, *sys.argv[1:], "--board", str(folder / "board.json")]
    rng = np.random.default_rng(given.seed)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port, observations, actions = json.loads(process.stdout.readline())
        with Hardware(
            port,
            observations=observations,
            actions=actions,
            sample_time=1.0 / given.rate,
            safe_action=SAFE,
            horizon=given.steps,
            log=folder / "log.csv",
            most_misses=given.most_misses,
        ) as plant:
            plant.reset()
            over = False
            while not over:
                _, _, terminated, over, info = plant.step(rng.uniform(-12.0, 12.0, 1))
                if terminated:
                    raise SystemExit(f"stopped at sample {info['sample']}: {info['stopped']}")
        process.stdin.close()
        process.wait()
    with (folder / "log.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return plant.counts, rows, json.loads((folder / "board.json").read_text(encoding="utf-8"))


def compare(rows: list[dict[str, str]], known: list[dict[str, Any]], period: float) -> dict[str, str]:
    """Return what a comparison of the log with the board's own record finds."""
    by_number = {int(row["sample"]): row for row in rows}
    last = int(rows[-1]["sample"])  # the board has sent a few more before it heard of the end
    known = [one for one in known if one["number"] <= last]
    names, voltage = list(rows[0])[3:6], list(rows[0])[6]
    seen = {
        one["number"]: tuple(float(by_number[one["number"]][name]) for name in names)
        for one in known
        if one["number"] in by_number and by_number[one["number"]][names[0]]
    }
    wrong = sum(seen[one["number"]] != tuple(one["observation"]) for one in known if one["number"] in seen)
    missing = [one for one in known if one["number"] not in seen and one["fate"] != "lost"]
    played = [(by_number[one["number"]][voltage], one["played"]) for one in known[:-1]]
    wrong += sum(cell != "" and float(cell) != theirs[0] for cell, theirs in played)
    due = [one["number"] for one in known[1:-1] if one["fate"] != "sent"]
    unsent = [number for number in due if by_number[number]["sent by"] != "watchdog"]
    # In the others this process was not running at the deadline. When it was, there was an observation to
    # act on: this one, or a newer one.
    paused = sum(by_number[number]["sent by"] == "" for number in unsent)
    arrivals = [(float(row["arrival [s]"]), int(row["sample"])) for row in rows if row["arrival [s]"]]
    in_time = [at - n * period - known[n]["behind"] for at, n in arrivals if known[n]["fate"] == "sent"]
    delays = [at for one in known for at, fate in one["actions"] if fate == "played"]
    return {
        "samples of the board": f"{len(known):,}",
        "rows missing in the log": f"{len(known) - len(by_number):,}",
        "observations that came and are not in the log": f"{len(missing):,}",
        "rows that differ from the board": f"{wrong:,}",
        "observations lost or late": f"{len(due):,}",
        "  answered by the safe action": f"{len(due) - len(unsent):,}",
        "  acted on after a pause of this process": f"{len(unsent) - paused:,}",
        "  overtaken by a newer one in such a pause": f"{paused:,}",
        "longest time on one action, in samples": f"{longest(known)} (watchdog: {WATCHDOG})",
        "clock of the simulated board, behind": quantiles(np.array([one["behind"] for one in known])),
        "jitter of observations, from board to log": quantiles(
            np.abs(np.array(in_time) - np.median(in_time))
        ),
        "action at the board, after the sample": quantiles(np.array(delays)),
    }


def longest(known: list[dict[str, Any]]) -> int:
    """Return the most samples for which the board played an action without hearing of another."""
    most = run = 0
    for one in known:
        heard = any(fate == "played" for _, fate in one["actions"])
        run = 0 if heard or one["state"] != "R" else run + 1
        most = max(most, run)
    return most


def quantiles(seconds: NDArray[np.float64]) -> str:
    """Return median, 99 % and maximum in milliseconds."""
    median, high, most = 1e3 * np.quantile(seconds, (0.5, 0.99, 1.0))
    return f"median {median:.2f} ms, 99 % {high:.2f} ms, max {most:.1f} ms"


def main() -> None:
    """Run, compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=100.0, help="samples a second")
    parser.add_argument("--lost", type=float, default=0.01, help="share of lines, in both directions")
    parser.add_argument("--late", type=float, default=0.01, help="share of lines, in both directions")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most-misses", type=int, default=4, help="in a row, before the plant is stopped")
    parser.add_argument("--tcp", action="store_true", help="instead of a pseudo-terminal")
    parser.add_argument("--board", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.board:
        board(given)
        return
    with tempfile.TemporaryDirectory() as folder:
        counts, rows, known = run(given, Path(folder))
        found = compare(rows, known, 1.0 / given.rate)
    for name, value in (found | {"counts": str(counts)}).items():
        print(f"{name:46}  {value}")


if __name__ == "__main__":
    main()
