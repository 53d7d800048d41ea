"""What each difference between the paper's text and its authors' code is worth.

    python benchmarks/rule_differences.py                             # 20 seeds x 2,000 iterations
    python benchmarks/rule_differences.py --seeds 2 --iterations 100

The long runs of the paper, with the agents of `spaql paper`: by the rules of the authors' code, with a
single difference switched to the text, and by all rules of the text. Best seen is the best of all
evaluations, of AQL the last one; fresh are 500 new episodes. ± is the 95 % interval over seeds (Student's
t); differences are paired by seed. Runs are added to the JSON file as they finish; those that it holds are
not repeated. What cannot differ is not run: a highest temperature that was never reached, max Q where all
rewards and so all Q are at least 0, and AQL where no episode terminates.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy import stats

import spaql
from spaql.agents import agent_types
from spaql.algorithms.rule_sets import AUTHORS, TEXT, RuleSet
from spaql.archive import write_atomically
from spaql.experiments.run import Run
from spaql.studies.paper.study import CHOSEN, FULL, rollouts
from spaql.tables import markdown

PROBLEMS = ("cartpole200", "pendulum")
AUTHORS_NAME, TEXT_NAME, UNCAPPED = "authors", "text (all)", "no highest temperature"
SAME = {("cartpole200", "divided by max Q")}
"""Problems with a change that cannot make a difference there."""
SAME_ALGORITHM = ("pendulum", "aql")
"""A problem with an algorithm for which no rule makes a difference."""

SCHEDULE = {
    "a tie is no gain": replace(AUTHORS, tie_is_gain=False),
    "heats without a split": replace(AUTHORS, heats_after_split=False),
    UNCAPPED: replace(AUTHORS, temperature_max=math.inf),
    "reset after three balls": replace(AUTHORS, balls_before_reset=3),
    "reset after two balls": replace(AUTHORS, balls_before_reset=2),
    "divided by max Q": replace(AUTHORS, by_maximum=True),
}
CHANGES: dict[str, dict[str, RuleSet]] = {
    "spaql": SCHEDULE,
    "spaql-ts": {**SCHEDULE, "infinity metric": replace(AUTHORS, metric="infinity")},
    "aql": {},  # its one difference is all of the text's rules
}


@dataclass(frozen=True)
class Case:
    """An agent of the study, to be trained by each of the rules."""

    problem: str
    algorithm: str
    seed: int
    iterations: int


def cases(seeds: int, aql_seeds: int, iterations: int, *left_out: tuple[str, str]) -> list[Case]:
    """Return all cases, seed by seed: those that are finished at any time can be compared."""
    return [
        Case(problem, algorithm, seed, iterations)
        for seed in range(max(seeds, aql_seeds))
        for algorithm in CHANGES
        for problem in PROBLEMS
        if (problem, algorithm) not in left_out and seed < (aql_seeds if algorithm == "aql" else seeds)
    ]


def agent_for(
    case: Case, rules: RuleSet, problem: spaql.Problem | None = None, schedule: tuple[type, ...] = ()
) -> spaql.Agent:
    """Make the agent of `spaql paper`, with rules, a problem or a schedule of its own."""
    kind = agent_types()[case.algorithm]
    own = {"name": f"{case.algorithm}, own rules", "rule_sets": {"authors": rules}}
    learner = type("OwnRules", (*schedule, kind.learner_type), own)
    settings = {"scaling": CHOSEN[case.problem][case.algorithm], "rollouts": rollouts(case.problem)}
    if case.algorithm == "spaql-ts":
        settings["metric"] = rules.metric
    seed = Run(problem=case.problem, algorithm=case.algorithm, seed=case.seed).agent_seed
    return type("OwnRulesAgent", (kind,), {"learner_type": learner})(
        problem or case.problem, seed=seed, **settings
    )


def judged(case: Case, agent: spaql.Agent) -> dict[str, float]:
    """Train an agent, and judge it by fresh episodes."""
    agent.learn(iterations=case.iterations, progress_bar=False)
    last = agent.history.last()
    fresh = spaql.evaluate(agent, episodes=FULL.fresh_episodes, seed=agent.seed + 1)
    return {
        "seen": last["mean_return" if case.algorithm == "aql" else "best_return"],
        "fresh": fresh.mean,
        "arms": last["arms"],
        "resets": float(agent.history["resets"].sum()),
        "hottest": float(agent.history["temperature"].max()),
    }


def run_all(case: Case) -> list[dict[str, object]]:
    """Train an agent by each of the rules; what cannot differ from the authors' is theirs."""
    authors = judged(case, agent_for(case, AUTHORS))
    rows = {AUTHORS_NAME: authors, TEXT_NAME: judged(case, agent_for(case, TEXT))}
    for change, rules in CHANGES[case.algorithm].items():
        unreached = change == UNCAPPED and authors["hottest"] < AUTHORS.temperature_max
        same = unreached or (case.problem, change) in SAME
        rows[change] = authors if same else judged(case, agent_for(case, rules))
    return [{**asdict(case), "change": change, **row} for change, row in rows.items()]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the half-width of its 95 % interval by Student's t."""
    n = len(values)
    half = stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / math.sqrt(n) if n > 1 else math.nan
    return float(np.mean(values)), float(half)


def cell(values: Sequence[float], sign: str = "") -> str:
    """Write a mean with its interval."""
    mean, half = interval(values)
    digits = 0 if abs(mean) >= 1000 else 1
    return f"{mean:{sign},.{digits}f} ± {half:,.{digits}f}"


def table(rows: Sequence[dict[str, object]]) -> str:
    """Write a line for each change, as Markdown."""
    groups: dict[tuple[str, str, str], dict[int, dict[str, object]]] = {}
    for row in sorted(rows, key=lambda row: row["seed"]):
        key = (row["problem"], row["algorithm"], row["change"])
        groups.setdefault(key, {})[row["seed"]] = row
    lines = []
    for (problem, algorithm, change), by_seed in sorted(groups.items(), key=lambda item: item[0][:2]):
        base = groups.get((problem, algorithm, AUTHORS_NAME), {})
        both = [seed for seed in by_seed if seed in base]
        column = {
            name: [row[name] for row in by_seed.values()] for name in ("seen", "fresh", "arms", "resets")
        }
        paired = [by_seed[seed]["fresh"] - base[seed]["fresh"] for seed in both]
        lines.append(
            {
                "problem": problem,
                "algorithm": algorithm,
                "rules": change,
                "seeds": str(len(by_seed)),
                "best seen": cell(column["seen"]),
                "fresh": cell(column["fresh"]),
                "fresh less authors'": "" if change == AUTHORS_NAME or not both else cell(paired, "+"),
                "arms": cell(column["arms"]),
                "resets": f"{np.mean(column['resets']):,.0f}",
            }
        )
    return markdown(lines)


def main(
    run_all: Callable[[Case], list[dict[str, object]]], description: str, out: str, *left_out: tuple[str, str]
) -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=FULL.seeds)
    parser.add_argument("--aql-seeds", type=int, help="as many as the others by default")
    parser.add_argument("--iterations", type=int, default=FULL.iterations)
    parser.add_argument("--workers", type=int, default=1, choices=(1, 2))
    parser.add_argument("--out", type=Path, default=Path(out))
    options = parser.parse_args()
    aql_seeds = options.seeds if options.aql_seeds is None else options.aql_seeds
    rows = json.loads(options.out.read_text()) if options.out.exists() else []
    names = list(Case.__dataclass_fields__)
    done = {Case(**{name: row[name] for name in names}) for row in rows}
    wanted = cases(options.seeds, aql_seeds, options.iterations, *left_out)
    missing = [case for case in wanted if case not in done]
    began = time.perf_counter()
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for i, found in enumerate(pool.map(run_all, missing), start=1):
            rows += found
            write_atomically(options.out, (json.dumps(rows, indent=1) + "\n").encode())
            print(f"{i} of {len(missing)} agents in {time.perf_counter() - began:,.0f} s", flush=True)
    print(table([row for row in rows if Case(**{name: row[name] for name in names}) in wanted]))


if __name__ == "__main__":
    main(run_all, __doc__, "rule-differences.json", SAME_ALGORITHM)
