"""The policy card: a summary of a controller on one page."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
from gymnasium.spaces import Box, Discrete

from spaql.agents import Agent, Design
from spaql.agents.agent_file import model_file
from spaql.controllers import Controller, RandomPolicy, controller_of, text
from spaql.errors import SettingError
from spaql.evaluation import SizedTree, evaluate, find_bench, robustness, size_curve, smallest_within, stress
from spaql.evaluation.stress_tables import robustness_cells, worst_cells
from spaql.figures.basin import compute_basin
from spaql.figures.drawing import svg
from spaql.figures.names import NAMES
from spaql.figures.overlays import compute_phase
from spaql.figures.trees import MOST_LEAVES, compute_tree
from spaql.formatting import counted, number, places, with_interval
from spaql.languages import in_html
from spaql.plugins.page.card_control import control_section, ladder_section
from spaql.plugins.page.card_verdict import verdict_section
from spaql.plugins.page.play import STYLE as PLAY_STYLE
from spaql.plugins.page.play import compute_play, play_section
from spaql.problems import Problem
from spaql.simulate import Evaluation
from spaql.spaces import action_names, observation_names, split_unit
from spaql.tables import html_table

_LOSS = 0.02
"""Share of the return that a smaller tree may lose to be shown instead of the exact one."""
_CONTROL_EPISODES = 100
"""Episodes in which the closed loop is measured, at most."""
_STYLE = Path(__file__).with_name("card.css")
_NO_NETWORK = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"


def policy_card(
    path: Path | None,
    source: Agent | Design,
    *,
    episodes: int = 500,
    stressed: bool = False,
    starts: int = 2_000,
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
    stressed
        Add what takes longer, and matplotlib: smaller trees, and for plants with a bench the stress test and
        robustness.
    starts
        Of the stress test.
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
        parts += _with_memory(exact, stressed)
        parts += ladder_section(source)
    else:
        parts += _rules(source, exact, episodes, seed) if stressed else _text_of(exact)
        parts += verdict_section(path, source) if path is not None else ()
    if stressed and problem.setpoints:
        parts += control_section(source, min(episodes, _CONTROL_EPISODES), seed)
    if stressed and find_bench(problem) is not None:
        parts += _worst_cases(source, starts, seed)
    parts.append(_footer(path, seed))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{_NO_NETWORK}">'
        f"<title>{in_html(problem.name)}: policy card</title>"
        f"<style>{_STYLE.read_text('utf-8')}{PLAY_STYLE.read_text('utf-8')}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )


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
        shown[f"episodes that break {constraint.label}"] = f"{count:,}"
    if exact is not None:
        size, word = counted(exact.n_leaves, "leaf").split()
        shown[word + (", the fewest that do the same" if exact.smallest else "")] = size
        size, word = counted(exact.n_numbers, "number").split()
        shown[f"{word} in the rules"] = size
    if isinstance(source, Agent) and len(source.history):
        last = source.history.last()
        shown["training steps"] = f"{int(last['training_steps']):,}"
        if last["interactions"] != last["training_steps"]:
            shown["interactions, evaluations included"] = f"{int(last['interactions']):,}"
    boxes = (f"<div><b>{in_html(v)}</b><span>{in_html(k)}</span></div>" for k, v in shown.items())
    return f'<div class="figures">{"".join(boxes)}</div>'


def _spaces(problem: Problem) -> str:
    """Return tables of the observations and the actions."""
    observations = problem.states.space
    actions = problem.actions.space
    observed = observation_names(observations, problem.states.names)
    names = action_names(actions, problem.actions.names)
    rows = [{"it observes": name, **_ends(observations, j)} for j, name in enumerate(observed)]
    if isinstance(actions, Discrete):
        does = html_table([{"it does one of": name} for name in names])
    else:
        does = html_table([{"it sets": name, **_ends(actions, j)} for j, name in enumerate(names)])
    often = f"An episode has at most {problem.horizon:,} steps"
    return f"<div><h2>What it controls</h2><p>{often}.</p>{html_table(rows)}{does}</div>"


def _ends(space: Box | Discrete, j: int) -> dict[str, str]:
    if isinstance(space, Discrete):
        return {"from": str(space.start), "to": str(space.start + space.n - 1)}
    ends = (float(bound.ravel()[j]) for bound in (space.low, space.high))
    return dict(zip(("from", "to"), (f"{x:.4g}" if abs(x) < 1e30 else "" for x in ends), strict=True))


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


def _rules(source: Agent | Design, exact: Controller, episodes: int, seed: int) -> Iterator[str]:
    curve = size_curve(source, seed=seed)
    chosen = smallest_within(curve, _LOSS)
    x, y = _plane(chosen.tree)
    yield f"<h2>What it does</h2>{svg(compute_phase(source, x, y, seed=seed))}"
    yield from _drawn_tree(source, chosen, exact, episodes, seed)
    yield from _text_of(exact)


def _with_memory(policy: Controller, drawn: bool) -> Iterator[str]:
    """Yield the features, laws and limits of a controller with memory, and a drawing of its tree."""
    yield "<h2>The controller</h2><p>Its rules and laws read features, some of which remember.</p>"
    yield f"<pre>{in_html(text(policy, 4))}</pre>"
    if drawn and 1 < policy.n_leaves <= MOST_LEAVES:
        yield f'<div class="scroll">{svg(compute_tree(policy, title=""))}</div>'
    yield f"<details><summary>The exact numbers</summary><pre>{in_html(str(policy))}</pre></details>"


def _drawn_tree(
    source: Agent | Design, chosen: SizedTree, exact: Controller, episodes: int, seed: int
) -> Iterator[str]:
    yield "<h2>The rules</h2>"
    if chosen.tree.n_leaves == exact.n_leaves:
        size = counted(exact.n_leaves, "leaf")
        summary = f"All of the policy, {size}: the same action for every observation."
    else:
        other = evaluate(chosen.tree, source.problem, episodes=episodes, seed=seed + 1)
        summary = (
            f"A tree of {counted(chosen.tree.n_leaves, 'leaf')}, which chooses the same action in "
            f"{chosen.agreement:.1%} of the states that the exact one visits, and returned "
            f"{with_interval(other.mean, other.ci95)} in {counted(episodes, 'other episode')}. The exact one "
            f"has {exact.n_leaves}."
        )
    yield f"<p>{in_html(summary)}</p>"
    if chosen.tree.n_leaves <= MOST_LEAVES:
        yield f'<div class="scroll">{svg(compute_tree(chosen.tree, title=""))}</div>'


def _plane(tree: Controller) -> tuple[str | int, str | int]:
    """Return the axes of a map: the observations that are tested first and most, or an angle.

    Of a sum, and of a switching law, all observations that it depends on count as tested. Those that are
    only parts of features come last.
    """
    weight = np.zeros(tree.dims)
    waiting = [(0, 1.0)]
    tested = np.concatenate([np.eye(tree.dims), tree.combinations]) != 0.0
    while waiting:
        node, share = waiting.pop()
        j = int(tree.feature[node])
        if j < 0 and tree.discrete:
            weight += share * tree.laws.gain[tree.leaf[node]].any(axis=0)
        if j >= 0:
            weight += share * tested[j]
            waiting += [(int(tree.left[node]), share / 2), (int(tree.right[node]), share / 2)]
    columns = tree.frame.columns[np.argsort(-weight, kind="stable")].tolist()
    order = [j for j in columns if j < len(tree.observations)]
    order += [j for j in range(len(tree.observations)) if j not in order]
    names = [split_unit(name)[0] for name in tree.observations]
    angles = {n[4:-1] for n in names if n.startswith("cos(") and f"sin({n[4:-1]})" in names}
    if angles:
        angle = min(angles)
        others = [j for j in order if names[j] not in (f"cos({angle})", f"sin({angle})")]
        return angle, others[0]
    first, second = (order * 2)[:2]
    return first, second


def _worst_cases(source: Agent | Design, starts: int, seed: int) -> Iterator[str]:
    result = stress(source, starts=starts, seed=seed)
    low, high = result.share_ci95
    yield '<div class="sides"><div><h2>Where it fails</h2>'
    yield (
        f"<p>{result.share:.1%} of {len(result.starts):,} starts all over the plant's states succeed (95 % "
        f"interval {low:.1%} to {high:.1%}): {in_html(result.success_means)}. The worst:</p>"
    )
    yield f'<div class="scroll">{html_table(worst_cells(result, 10))}</div></div>'
    yield f"<div>{svg(compute_basin(source))}</div></div>"
    yield '<div class="sides"><div><h2>How robust it is</h2>'
    yield f"{html_table(robustness_cells(robustness(source, seed=seed)))}</div></div>"


def _footer(path: Path | None, seed: int) -> str:
    which = "Not saved yet"
    if path is not None:
        file = model_file(path)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        which = f"{in_html(file.name)}, SHA-256 <code>{digest}</code>"
    return (
        f"<footer>{which}. Made by spaql {version('spaql')}, "
        f"with episodes of seed {seed}. No actions are drawn in maps, stress tests and robustness: there it "
        "does what the rules say.</footer>"
    )
