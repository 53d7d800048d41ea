"""The report of `spaql train`: returns, cost and size, and how the controller was found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spaql.agents import Agent, PlanTree, TreeSearch
from spaql.cli.group import INTERRUPTED
from spaql.cli.report import Report, fitted, plain, wrapped
from spaql.evaluation import PlainControllers
from spaql.evaluation.beside import failure
from spaql.formatting import counted, number, places, with_interval

if TYPE_CHECKING:
    from spaql.simulate import Evaluation
    from spaql.verify import Verdict

FRESH_EPISODES = 100
"""Number of new episodes that evaluate the result."""


def training_report(
    agent: Agent,
    folder: Path,
    fresh: Evaluation,
    others: PlainControllers | None,
    *,
    algo: str,
    interrupted: bool,
    verified: bool,
) -> Report:
    """Return the report of a run that was saved, with the controllers that it is compared with."""
    data = _data(agent, folder, fresh, others)
    search_data, search_text = _search(agent)
    data |= search_data
    own = f" --import {algo}" if ":" in algo else ""
    text = f"{search_text}{_text(data, agent, fresh, others)}{own}{_designed_for(agent)}"
    if verified:
        import spaql

        text += verdict_text(data, spaql.verify(agent), folder)
    return Report(data, text, code=INTERRUPTED if interrupted else 0)


def verdict_text(data: dict[str, Any], verdict: Verdict, folder: Path) -> str:
    """Store a verdict in a run folder, and add it to the data; returns it as a paragraph."""
    from spaql.cli.verify import store

    data["verified"] = verdict.as_data()
    return f"\n\n{verdict.text}{store(verdict, folder)}"


def _data(agent: Agent, folder: Path, fresh: Evaluation, others: PlainControllers | None) -> dict[str, Any]:
    data = {
        "run": str(folder),
        "env": agent.problem.name,
        "algorithm": agent.learner_type.name,
        "seed": agent.seed,
        **{name: plain(value) for name, value in agent.history.last().items()},
        "fresh_return": fresh.mean,
        "fresh_ci95": fresh.ci95,
        "fresh_episodes": FRESH_EPISODES,
        "designed_for": agent.designed_for,
    }
    if others is not None:
        data["compared_with"] = others.returns
        data["warning"] = failure(agent, fresh, others)
    if fresh.violations:
        data["violations"] = fresh.violations
    size, unit = agent.policy.size
    if unit == "leaf":  # the last row of the history may be older
        data["leaves"] = size
    if isinstance(agent, PlanTree | TreeSearch):
        data["mirror"] = agent.mirror
    return data


def _search(agent: Agent) -> tuple[dict[str, Any], str]:
    """Return the structures tried and what was learned about the plant, as data and as paragraphs."""
    from spaql.evaluation.result_tables import LADDER_MEANS, LEARNED_MEANS, ladder_cells, lags_text

    data: dict[str, Any] = {}
    text = ""
    if not isinstance(agent, PlanTree | TreeSearch):
        return data, text
    rungs = agent.ladder
    if rungs:
        data["ladder"] = rungs
        notes = agent.design_notes if isinstance(agent, TreeSearch) else []
        if notes:
            data["design_notes"] = notes
        means = [f"{LADDER_MEANS} See docs/ladder.md.", *notes]
        text += "\n".join([fitted(ladder_cells(rungs)), *map(wrapped, means)]) + "\n\n"
    if isinstance(agent, PlanTree) and agent.lags is not None:
        data["lags"] = agent.lags
        predicted = f"{LEARNED_MEANS} " if rungs else ""
        text += f"{predicted}{lags_text(agent.lags)}\n\n"
    return data, text


def _text(data: dict[str, Any], agent: Agent, fresh: Evaluation, others: PlainControllers | None) -> str:
    units = {"arms": "arm", "leaves": "leaf"}
    size = "".join(f"{counted(data[name], unit)}, " for name, unit in units.items() if name in data)
    fresh_return = with_interval(data["fresh_return"], data["fresh_ci95"])
    evaluated = data["interactions"] > data["training_steps"]
    kind = "noisy evaluation" if evaluated else agent.learner_type.iteration_is
    lines = [f"fresh return  {fresh_return}  ({data['fresh_episodes']} new episodes)"]
    if others is not None:
        lines.append(f"compared with {others.text}")
    lines += [
        f"best seen     {_best(data, agent.history.n_returns, kind)}",
        f"cost          {_cost(data, evaluated=evaluated)}",
    ]
    lines += [
        f"constraint    {constraint}: violated in {count:,} of {data['fresh_episodes']} new episodes"
        for constraint, count in data.get("violations", {}).items()
    ]
    lines.append(f"policy        {size}seed {data['seed']}, saved in {data['run']}")
    if data.get("mirror"):
        lines.append(f"mirror        {data['mirror']}")
    if data.get("warning"):
        lines += ["", data["warning"]]
    return "\n".join([*lines, "", f"Next: spaql show {data['run']} --digits 3"])


def _best(data: dict[str, Any], returns: int, kind: str) -> str:
    """Return the best return so far, and the number of returns."""
    if not returns:
        return "none  (the budget ended within the first episode)"
    digits = places(data["fresh_return"], data["fresh_ci95"])
    return f"{number(data['best_return'], digits)}  (the best of {counted(returns, kind)}: biased upwards)"


def _cost(data: dict[str, Any], *, evaluated: bool) -> str:
    """Return the steps of a training, by their use."""
    interactions = f"{data['interactions']:,} interactions"
    if "search_steps" in data:
        parts = f"{data['search_steps']:,} in the search and {data['own_play_steps']:,} in evaluations"
        return f"{interactions}, {parts}"
    steps = f"{data['training_steps']:,} training steps"
    return f"{steps}, {interactions} {'with' if evaluated else 'without'} evaluations"


def _designed_for(agent: Agent) -> str:
    """Return the plants for which the controller was designed, if the plant declares a perturbation."""
    plant = agent.problem.dynamics
    if agent.designed_for == "perturbed":
        also = " (evaluate --perturbed: of perturbed plants)" if plant is not None else ""
        return f"\n\nDesigned for perturbed plants; the fresh return is of the nominal plant{also}."
    if plant is not None and plant.perturbation is not None:
        return "\n\nDesigned for the nominal plant: the declared perturbation was not used in training."
    return ""
