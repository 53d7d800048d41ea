"""The report of the comparison: figures, tables, settings and what they say, as Markdown and HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from spaql.archive import write_atomically
from spaql.errors import SettingError
from spaql.experiments import RunStore
from spaql.figures.drawing import save, write
from spaql.figures.names import NAMES
from spaql.figures.reports import as_html, write_table
from spaql.studies.baselines.zoo import SOURCE
from spaql.studies.compare.curves import compute_rivals
from spaql.studies.compare.ranking import Duel, Standings, duels, standings
from spaql.studies.compare.study import ALGORITHMS, PROBLEMS
from spaql.studies.compare.tables import (
    Cells,
    details_table,
    duels_table,
    hyperparameters_table,
    returns_table,
)
from spaql.tables import markdown

_TITLE = "PlanTree beside other algorithms"

_HOW = (
    "**Interactions** are all steps that an algorithm takes in the environment: for SPAQL and SPAQL-TS "
    "with the evaluations by which they choose their best agent, for networks the steps of all "
    "environments that are stepped together. PlanTree is told its budget and has a run of its own for "
    "each; the others are measured on the way of one long run. The column of a number of interactions has "
    "the last policy with that many at most, or up to 10 % more, because a batch that is begun is "
    "finished; the true numbers are in the longer tables. A cell is empty where there is no "
    "newer policy than in the column before, or where the run was over.\n\n"
    "**Returns** are means over fresh episodes of the policy as it was then, in the environment's own "
    "units, without drawing actions; all algorithms begin them in the same states. They serve to "
    "measure alone and are counted for none. ± is Student's 95 % interval over seeds, which "
    "for 5 seeds is 2.78 standard errors. Nothing is chosen afterwards: no best "
    "seed, no best checkpoint.\n\n"
    "**Worst seed** is the lowest of the seeds' mean returns; **worst start** the lowest return among "
    "the episodes, its mean over seeds; **worst of all** its minimum. **Change** is the mean change of "
    "the action from step to step, in the action's unit, or in numbers of listed actions. **Size** is "
    "the leaves of a tree, the balls of a partition, or the numbers of a law or network that an action "
    "is computed from (critics are left out). Seconds are medians of the time to train, by the "
    "processor and by the clock, on one core that was shared; measuring is left out, and loading or "
    "compiling what a process needs is counted in its first run.\n\n"
    "**Textbook** is made from the plant's equations: on Pendulum, full torque in the direction of the "
    "speed until the energy is that of rest upright, and within 0.5 rad of the top a linear law (LQR "
    "with the weights of the reward); on CartPole, a push in the direction of an LQR's force (all "
    "weights 1). It needs no interactions, but a model."
)

_SETTINGS = (
    f"Networks are those of Stable-Baselines3 and sb3-contrib with the hyperparameters that {SOURCE} "
    "publishes for each environment (`rl_zoo3/hyperparams/` of "
    "[rl-baselines3-zoo](https://github.com/DLR-RM/rl-baselines3-zoo)), what they leave out being the "
    "libraries' defaults. They are run for fewer steps than most were published for: schedules (`lin_`, "
    "exploration) fall over the budget here, as with rl-zoo3's option `-n`. `normalize` is "
    "Stable-Baselines3's `VecNormalize`, whose scale is frozen while measuring. TD3 on Pendulum learns "
    "nothing before its `learning_starts`. PlanTree has one default for all problems. SPAQL and "
    "SPAQL-TS have the paper's xi (the scale of the bonus for what is rarely tried) on Pendulum, the "
    "default elsewhere, and 20 evaluation episodes an iteration; SPAQL-TS regulates to the goal at "
    "rest."
)


_AGAINST = (
    "- PlanTree was developed on these five problems (on other seeds); the networks' settings were tuned on "
    "them too, but by others, mostly for longer runs, and not for few interactions.\n"
    "- Five plants with two to six numbers of state and one action, without noise, say nothing of "
    "noise, nor of images and many dimensions, where networks are at home and PlanTree is not.\n"
    "- The textbook's controllers need no interactions. Whoever has the equations should begin there.\n"
    "- A network learns from one step to the next and can go on for ever; PlanTree must know its budget.\n"
    "- Episodes that measure are free here. In practice a network's user spends some to pick a checkpoint; "
    "without that, its last policy may be worse than an earlier one."
)


def write_comparison(store: RunStore, out: Path, command: str) -> list[Duel]:
    """Write tables, figures and the report of what is finished; gives PlanTree's duels with its rivals.

    Under `out`: `tables/returns-PROBLEM`, `details-PROBLEM`, `points`, `duels` and `hyperparameters`, each
    as `.md`, `.csv` and `.tex`; `figures` and `data` of every problem; `report.md`, and `report.html`, which
    needs no other file.
    """
    found = standings(store)
    if not found:
        raise SettingError(f"No run is finished in {store.root}: leave out `--only report`.")
    problems = [name for name in PROBLEMS if any(problem == name for problem, _ in found)]
    fought = duels(found)
    tables = {"hyperparameters": hyperparameters_table()}
    if fought:
        tables["duels"] = duels_table(fought)
    for problem in problems:
        tables[f"returns-{problem}"] = returns_table(found, problem)
        tables[f"details-{problem}"] = details_table(found, problem)
        record = compute_rivals(found, problem)
        write(record, out / "data" / f"{problem}.json")
        save(record, out / "figures", problem)
    tables["points"] = [row for name in problems for row in details_table(found, name, every_point=True)]
    for name, cells in tables.items():
        write_table(cells, out / "tables", name)
    text = _text(problems, tables, found, fought, command)
    write_atomically(out / "report.md", text.encode())
    write_atomically(out / "report.html", as_html(_TITLE, text, out).encode())
    return fought


def _text(
    problems: Sequence[str], tables: dict[str, Cells], found: Standings, fought: Sequence[Duel], command: str
) -> str:
    parts = [
        f"# {_TITLE}",
        "How much return a controller brings for the steps spent on learning it, and what it costs beside: "
        "its worst case, how it shakes the actuator, its size, and the time to train it.",
        f"Made by `{command}`, which goes on where it was stopped, and draws what is there without torch.",
        _finished(found),
        "## Where PlanTree loses",
        _verdicts(fought),
    ]
    if lost := [duel for duel in fought if duel.verdict != "ahead" and duel.difference < 0]:
        parts.append(markdown(duels_table(lost)))
    for problem in problems:
        parts += [
            f"## {problem}",
            f"![{problem}: return against interactions](figures/{problem}.svg)",
            markdown(tables[f"returns-{problem}"]),
            markdown([_without_problem(row) for row in tables[f"details-{problem}"]]),
        ]
    parts += ["## What speaks against this comparison", _AGAINST, "## How it was measured", _HOW]
    parts += ["## Settings and their source", _SETTINGS]
    return "\n\n".join([*parts, markdown(tables["hyperparameters"])])


def _finished(found: Standings) -> str:
    """Say of how many seeds each algorithm's runs are finished, which may differ between problems."""
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


def _verdicts(fought: Sequence[Duel]) -> str:
    if not fought:
        return "PlanTree has no finished run beside another algorithm's yet."
    counts = Counter(duel.verdict for duel in fought)
    return (
        "At each of its budgets PlanTree is held against every other algorithm with as many interactions at "
        f"most: {len(fought)} pairs. It is ahead in {counts['ahead']}, behind in {counts['behind']} (Welch's "
        f"test over seeds, 5 %), and {counts['cannot tell']} cannot be told. Here are all those in which its "
        "mean is the lower one."
    )


def _without_problem(row: dict[str, str]) -> dict[str, str]:
    return {name: cell for name, cell in row.items() if name != "problem"}
