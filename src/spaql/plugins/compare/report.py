"""The report of the comparison: figures, tables, settings and conclusions, as Markdown and HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from spaql.archive import write_atomically
from spaql.errors import SettingError
from spaql.figures.drawing import save, write
from spaql.figures.style import NAMES
from spaql.plugins.compare.baselines.networks import SOURCE
from spaql.plugins.compare.ranking import PairComparison, Standing, Standings, comparisons, standings
from spaql.plugins.compare.study import ALGORITHMS, PROBLEMS
from spaql.plugins.compare.tables import (
    Cells,
    comparisons_table,
    details_table,
    hyperparameters_table,
    returns_table,
)
from spaql.plugins.sweeps.groups import wrapped
from spaql.plugins.sweeps.learning_curves import CurvesPanel, LearningCurvesRecord, MeanCurve
from spaql.plugins.sweeps.store import RunStore
from spaql.plugins.sweeps.table import as_html, write_table
from spaql.stats import mean_ci95
from spaql.tables import markdown

_TITLE = "PlanTree compared with other algorithms"

_HOW = (
    "**Interactions** are all steps that an algorithm takes in the environment: for SPAQL and SPAQL-TS "
    "including the evaluations by which they select their best agent, for networks the steps of all "
    "parallel environments. PlanTree needs its budget in advance and has a separate run for each; the "
    "others are measured during one long run. The column of a number of interactions has the last policy "
    "with at most that many, or up to 10 % more, because a started batch is finished; the exact numbers "
    "are in the longer tables. A cell is empty where there is no newer policy than in the column before, "
    "or where the run had ended.\n\n"
    "**Returns** are means over fresh episodes of the policy at that time, in the environment's own "
    "units, with deterministic actions; all algorithms start them in the same states. These episodes are "
    "only used for measuring and are not counted as interactions. ± is Student's 95 % interval over "
    "seeds, which for 5 seeds is 2.78 standard errors. Nothing is chosen afterwards: no best seed, no best "
    "checkpoint.\n\n"
    "**Worst seed** is the lowest of the seeds' mean returns; **worst start** the lowest return among "
    "the episodes, its mean over seeds; **worst of all** its minimum. **Change** is the mean change of "
    "the action from step to step, in the action's unit, or in numbers of discrete actions. **Size** is "
    "the number of leaves of a tree, balls of a partition, or parameters of a law or network that an "
    "action is computed from (critics are excluded). Seconds are medians of the training time, processor "
    "and wall-clock, on one shared core; measuring is excluded, and loading or compiling is included in "
    "the first run of a process.\n\n"
    "**Textbook** is derived from the plant's equations: on Pendulum, full torque in the direction of the "
    "speed until the energy is that of the upright rest position, and within 0.5 rad of the top a linear "
    "law (LQR with the weights of the reward); on CartPole, a push in the direction of an LQR's force (all "
    "weights 1). It needs no interactions, but a model."
)

_SETTINGS = (
    f"Networks are those of Stable-Baselines3 and sb3-contrib with the hyperparameters that {SOURCE} "
    "publishes for each environment (`rl_zoo3/hyperparams/` of "
    "[rl-baselines3-zoo](https://github.com/DLR-RM/rl-baselines3-zoo)); all others are the "
    "libraries' defaults. They are run for fewer steps than most were published for: schedules (`lin_`, "
    "exploration) decay over the budget here, as with rl-zoo3's option `-n`. `normalize` is "
    "Stable-Baselines3's `VecNormalize`, whose statistics are frozen while measuring. TD3 on Pendulum learns "
    "nothing before its `learning_starts`. PlanTree has one default for all problems. SPAQL and "
    "SPAQL-TS have the paper's xi (the scale of the exploration bonus) on Pendulum, the "
    "default elsewhere, and 20 evaluation episodes an iteration; SPAQL-TS regulates to the goal at "
    "rest."
)

_LIMITS = (
    "- PlanTree was developed on these five problems (on other seeds); the networks' settings were tuned on "
    "them too, but by others, mostly for longer runs, and not for few interactions.\n"
    "- Five plants with two to six state variables and one action, without noise, say nothing about "
    "noise, nor about images and many dimensions, where networks do well and PlanTree does not.\n"
    "- The textbook's controllers need no interactions. If you have the equations, start there.\n"
    "- A network learns from one step to the next and can be trained indefinitely; PlanTree must know its "
    "budget.\n"
    "- Evaluation episodes are free here. In practice a network's user spends some to select a checkpoint; "
    "without that, its last policy may be worse than an earlier one."
)


def write_comparison(store: RunStore, out: Path, command: str) -> list[PairComparison]:
    """Write tables, figures and the report of the finished runs.

    Under `out`: `tables/returns-PROBLEM`, `details-PROBLEM`, `points`, `duels` and `hyperparameters`, each
    as `.md`, `.csv` and `.tex`; `figures` and `data` of every problem; `report.md`, and `report.html`, which
    needs no other file. Returns PlanTree's comparisons.
    """
    found = standings(store)
    if not found:
        raise SettingError(f"No run is finished in {store.root}: leave out `--only report`.")
    problems = [name for name in PROBLEMS if any(problem == name for problem, _ in found)]
    pairs = comparisons(found)
    tables = {"hyperparameters": hyperparameters_table()}
    if pairs:
        tables["duels"] = comparisons_table(pairs)
    for problem in problems:
        tables[f"returns-{problem}"] = returns_table(found, problem)
        tables[f"details-{problem}"] = details_table(found, problem)
        record = curves(found, problem)
        write(record, out / "data" / f"{problem}.json")
        save(record, out / "figures", problem)
    tables["points"] = [row for name in problems for row in details_table(found, name, every_point=True)]
    for name, cells in tables.items():
        write_table(cells, out / "tables", name)
    text = _text(problems, tables, found, pairs, command)
    write_atomically(out / "report.md", text.encode())
    write_atomically(out / "report.html", as_html(_TITLE, text, out).encode())
    return pairs


def curves(found: Standings, problem: str) -> LearningCurvesRecord:
    """Return the data of the figure of a problem."""
    note = wrapped(
        "Lines: fresh episodes of the policy as it was then; PlanTree has a run for each point. Bands and "
        "bars: 95 % interval over seeds. Dashed: no interactions.",
        "Interactions are all steps taken to learn; the episodes that measure are not counted.",
    )
    lines = [_curve(found[problem, name]) for name in ALGORITHMS if (problem, name) in found]
    title = f"{problem}: return against interactions"
    return LearningCurvesRecord(title, note, (CurvesPanel(problem, tuple(lines)),))


def _curve(line: Sequence[Standing]) -> MeanCurve:
    intervals = [mean_ci95(standing.returns) for standing in line]
    means, halves = zip(*intervals, strict=True)
    interactions = tuple(float(standing.interactions.mean()) for standing in line)
    last = line[-1]
    return MeanCurve(
        NAMES[last.algorithm],
        last.algorithm,
        "curve",
        last.seeds,
        interactions,
        means,
        halves,
        interactions[-1],
        *intervals[-1],
    )


def _text(
    problems: Sequence[str],
    tables: dict[str, Cells],
    found: Standings,
    pairs: Sequence[PairComparison],
    command: str,
) -> str:
    parts = [
        f"# {_TITLE}",
        "The return of a controller for the steps spent on learning it, and what else it costs: its worst "
        "case, the actuator rate, its size, and the time to train it.",
        f"Made by `{command}`, which continues where it was stopped, and draws finished runs without torch.",
        _finished(found),
        "## Where PlanTree loses",
        _verdicts(pairs),
    ]
    if lost := [pair for pair in pairs if pair.verdict != "ahead" and pair.difference < 0]:
        parts.append(markdown(comparisons_table(lost)))
    for problem in problems:
        parts += [
            f"## {problem}",
            f"![{problem}: return against interactions](figures/{problem}.svg)",
            markdown(tables[f"returns-{problem}"]),
            markdown([_without_problem(row) for row in tables[f"details-{problem}"]]),
        ]
    parts += ["## Limits of this comparison", _LIMITS, "## How it was measured", _HOW]
    parts += ["## Settings and their source", _SETTINGS]
    return "\n\n".join([*parts, markdown(tables["hyperparameters"])])


def _finished(found: Standings) -> str:
    """Return the number of finished seeds of each algorithm, which may differ between problems."""
    seeds: dict[str, list[int]] = {}
    for (_, algorithm), line in found.items():
        seeds.setdefault(algorithm, []).extend(standing.seeds for standing in line)
    parts = [
        f"{NAMES[name]} {min(seeds[name])}"
        + (f" to {max(seeds[name])}" if max(seeds[name]) > min(seeds[name]) else "")
        for name in ALGORITHMS
        if name in seeds
    ]
    absent = [NAMES[name] for name in ALGORITHMS if name not in seeds]
    rest = f" Not yet run: {', '.join(absent)}." if absent else ""
    return f"Seeds finished: {', '.join(parts)}.{rest}"


def _verdicts(pairs: Sequence[PairComparison]) -> str:
    if not pairs:
        return "There are no finished runs yet to compare PlanTree with another algorithm."
    counts = Counter(pair.verdict for pair in pairs)
    return (
        "At each of its budgets PlanTree is compared with every other algorithm with at most as many "
        f"interactions: {len(pairs)} pairs. It is ahead in {counts['ahead']}, behind in {counts['behind']} "
        f"(Welch's test over seeds, 5 %), and {counts['cannot tell']} are not significant. The table lists "
        "all pairs in which its mean is the lower one."
    )


def _without_problem(row: dict[str, str]) -> dict[str, str]:
    return {name: cell for name, cell in row.items() if name != "problem"}
