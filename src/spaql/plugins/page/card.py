"""The policy card: a summary of a controller on one page."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from spaql.agents import Agent, Design, PlanTree, TreeSearch
from spaql.agents.agent_file import model_file, verdict_file
from spaql.controllers import Controller, RandomPolicy, controller_of, text
from spaql.errors import SettingError, SpaqlError
from spaql.evaluation import evaluate
from spaql.evaluation.plant_tables import signal_cells
from spaql.evaluation.result_tables import LADDER_MEANS, LEARNED_MEANS, ladder_cells, lags_text
from spaql.figures.drawing import svg
from spaql.figures.html import page
from spaql.figures.style import NAMES
from spaql.figures.verdicts import compute_verdict
from spaql.formatting import counted, number, places, with_interval
from spaql.languages import in_html
from spaql.plugins.page.play import STYLE as PLAY_STYLE
from spaql.plugins.page.play import compute_play, play_section
from spaql.problems import Problem
from spaql.simulate import Evaluation
from spaql.spaces import observation_names, split_unit
from spaql.tables import html_table
from spaql.verify.stored import verdict_about
from spaql.verify.verdict import Verdict

_STYLE = Path(__file__).with_name("card.css")


def policy_card(
    path: Path | None,
    source: Agent | Design,
    *,
    episodes: int = 500,
    seed: int = 0,
) -> str:
    """Return the card of a controller as one page of HTML that needs no other file.

    Where the controller is a tree, and the plant has equations or was learned, it can be played with and
    edited in the page: drag the state, a threshold or a gain.

    Parameters
    ----------
    path
        The model file or run folder it was read from; None if it is not saved yet.
    source
        The agent or controller (see `spaql.load`).
    episodes
        Fresh episodes to evaluate it in.
    seed
        Of all episodes.
    """
    problem = source.problem
    fresh = evaluate(source, episodes=episodes, seed=seed)
    exact = None if source.policy.time_variant else controller_of(source)
    parts = [
        _header(source),
        _numbers(source, fresh, exact, seed),
        _playable(source, exact, seed),
        '<div class="sides">',
        _spaces(problem),
        _returns(problem, fresh),
        "</div>",
    ]
    if exact is None:
        parts.append(
            "<p>It has another policy at every time step: <code>spaql show --step</code> prints them.</p>"
        )
    elif exact.remembers:
        parts += _with_memory(exact)
        parts += _ladder(source)
    else:
        parts += _text_of(exact)
        parts += _verdict(path, source) if path is not None else ()
    parts.append(_footer(path, seed))
    style = f"{_STYLE.read_text('utf-8')}{PLAY_STYLE.read_text('utf-8')}"
    return page(f"{problem.name}: policy card", style, "".join(parts), scripts=True)


def _header(source: Agent | Design) -> str:
    problem = source.problem
    environment = f", {problem.env}" if problem.env not in (None, problem.name) else ""
    if isinstance(source, Agent):
        origin = f"learned by {source.learner_type.name} with seed {source.seed}"
    else:
        kind = "controller with memory" if source.policy.remembers else "rule tree"
        origin = f"a {kind} of its own" + "".join(f", {k} {v}" for k, v in source.origin.items())
    title = in_html(NAMES.get(problem.name, problem.name))
    origin = in_html(f"A controller for {problem.name}{environment}: {origin}.")
    return f"<header><h1>{title}</h1><p>{origin}</p></header>"


def _playable(source: Agent | Design, controller: Controller | None, seed: int) -> str:
    """Return the interactive part, or why there is none."""
    if controller is None:
        return "<p>A policy that is another one at each time step is not played in the page.</p>"
    try:
        return play_section(compute_play(source, controller, seed=seed))
    except SettingError as error:
        return f"<p>There is nothing to play with here. {in_html(str(error))}</p>"


def _text_of(exact: Controller) -> Iterator[str]:
    yield f"<details open><summary>The exact rules, {counted(exact.n_leaves, 'leaf')}</summary>"
    yield f"<pre>{in_html(text(exact))}</pre></details>"


def _numbers(source: Agent | Design, fresh: Evaluation, exact: Controller | None, seed: int) -> str:
    problem = source.problem
    random = evaluate(RandomPolicy(problem.states, problem.actions), problem, episodes=100, seed=seed)
    shown = {
        f"return of {counted(len(fresh.returns), 'fresh episode')}": with_interval(fresh.mean, fresh.ci95),
        "worst of them": number(fresh.returns.min(), places(fresh.mean, fresh.ci95)),
        "return of the random policy": with_interval(random.mean, random.ci95),
    }
    for constraint, count in zip(fresh.constraints, fresh.violations.values(), strict=True):
        shown[f"episodes that violate {constraint.label}"] = f"{count:,}"
    if exact is not None:
        size, word = counted(exact.n_leaves, "leaf").split()
        shown[word + (", the fewest that are equivalent" if exact.smallest else "")] = size
        size, word = counted(exact.n_numbers, "parameter").split()
        shown[f"{word} in the rules"] = size
    if isinstance(source, Agent) and len(source.history):
        last = source.history.last()
        shown["training steps"] = f"{int(last['training_steps']):,}"
        if last["interactions"] != last["training_steps"]:
            shown["interactions, evaluations included"] = f"{int(last['interactions']):,}"
    boxes = (f"<div><b>{in_html(v)}</b><span>{in_html(k)}</span></div>" for k, v in shown.items())
    return f'<div class="figures">{"".join(boxes)}</div>'


def _spaces(problem: Problem) -> str:
    """Return a table of the observations and the actions."""
    often = f"An episode has at most {problem.horizon:,} steps"
    return f"<div><h2>What it controls</h2><p>{often}.</p>{html_table(signal_cells(problem))}</div>"


def _returns(problem: Problem, result: Evaluation) -> str:
    digits = places(result.mean, result.ci95)
    quantiles = {f"{q:.0%}": number(value, digits) for q, value in result.quantiles.items()}
    names = observation_names(problem.states.space, problem.states.names)
    worst = [
        {"": f"{i}", "return": number(episode.total, digits), "steps": f"{episode.length}"}
        | {split_unit(name)[0]: f"{x:.3g}" for name, x in zip(names, episode.start, strict=True)}
        for i, episode in enumerate(result.worst, 1)
    ]
    return (
        "<div><h2>What it returns</h2><p>Quantiles of the fresh episodes, and the worst of them with their "
        f'starts.</p><div class="scroll">{html_table([{"quantile": "return", **quantiles}])}</div>'
        f'<div class="scroll">{html_table(worst)}</div></div>'
    )


def _with_memory(policy: Controller) -> Iterator[str]:
    """Yield the features, laws and limits of a controller with memory."""
    yield "<h2>The controller</h2><p>Its rules and laws read features, some of which remember.</p>"
    yield f"<pre>{in_html(text(policy, 4))}</pre>"
    yield f"<details><summary>The exact numbers</summary><pre>{in_html(str(policy))}</pre></details>"


def _ladder(source: Agent | Design) -> Iterator[str]:
    """Yield the ladder of a run that climbed one: the structures that were tried."""
    rungs = source.ladder if isinstance(source, TreeSearch | PlanTree) else []
    if rungs:
        yield f'<h2>The ladder</h2><div class="scroll">{html_table(ladder_cells(rungs))}</div>'
        notes = source.design_notes if isinstance(source, TreeSearch) else []
        yield from (f"<p>{in_html(line)}</p>" for line in (LADDER_MEANS, *notes))
        if isinstance(source, PlanTree) and source.lags is not None:
            yield f"<p>{in_html(f'{LEARNED_MEANS} {lags_text(source.lags)}')}</p>"


def _verdict(path: Path, source: Agent | Design) -> Iterator[str]:
    """Yield the last verdict about a controller, and nothing if it was not verified.

    A verdict about another controller, or about other equations of the plant, is not shown.
    """
    try:
        verdict = verdict_about(verdict_file(path), source)
    except SpaqlError as error:
        yield f"<h2>What is proven</h2><p>No verdict is shown. {in_html(str(error))}</p>"
        return
    if verdict is None:
        return
    first, *rest = verdict.text.split("\n")
    yield f'<div class="sides"><div><h2>What is proven</h2><p>{in_html(first)}</p>'
    yield "".join(f"<p>{in_html(line)}</p>" for line in rest)
    if not verdict.finished:
        yield "<p>The time was up before the search had ended: this is the answer until then.</p>"
    yield f"</div>{_verdict_map(verdict)}</div>"


def _verdict_map(verdict: Verdict) -> str:
    """Return the map, where there is one and it can be drawn."""
    if find_spec("matplotlib") is None or verdict.status.ndim < 2 or verdict.status.size == 1:
        return ""
    return f"<div>{svg(compute_verdict(verdict))}</div>"


def _footer(path: Path | None, seed: int) -> str:
    which = "Not saved yet"
    if path is not None:
        file = model_file(path)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        which = f"{in_html(file.name)}, SHA-256 <code>{digest}</code>"
    return f"<footer>{which}. Made by spaql {version('spaql')}, with episodes of seed {seed}.</footer>"
