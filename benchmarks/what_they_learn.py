"""What AQL, SPAQL and SPAQL-TS learn: `python benchmarks/what_they_learn.py`, for docs/what-they-learn.md.

Trains with the paper's settings and looks at the Q of the balls: how many are at least H, how they go with
the visits, and whether V says anything of the return. Every run is a line of `--out` as soon as it is done,
and is not done again; the tables are made of all lines there. `--part` is one of `study` (every problem of
the paper), `no-bonus` (xi = 0 on CartPole), `frozen-lake` and `changes` (small changes that let V fall, of
`changed_spaql.py`). `--figure docs/pictures/what-they-learn.svg` trains four agents and draws them instead.
"""

import argparse
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from changed_spaql import DiscountedSPAQL, EndingSPAQL, falling
from numba import njit
from numpy.typing import NDArray

import spaql
from spaql.figures.names import NAMES
from spaql.figures.style import COLOURS, GREY, new_figure, number_ticks, styled
from spaql.policy import PartitionPolicy, Policy, RandomPolicy
from spaql.problems import Problem, make_problem
from spaql.rollouts import play
from spaql.studies.paper.study import CHOSEN, rollouts

Floats = NDArray[np.float64]
AGENTS = {"aql": spaql.AQL, "spaql": spaql.SPAQL, "spaql-ts": spaql.SPAQLTS}
SCALED = {"aql": 160, "spaql": 10, "spaql-ts": 0}
"""The xi of the authors for scaled rewards; the others are the paper's."""
HIGHEST_COST = math.pi**2 + 0.1 * 8**2 + 0.001 * 2**2
"""Of a step of Pendulum."""
STATES = 400
"""At which V is compared with the return from there."""
PLAYS = 5


@njit
def mean_bonus(horizon: int, visits: int) -> Floats:
    """Return f_H(v), the bonuses 1 / sqrt(i) of v visits as the learning rates average them, by v."""
    means = np.ones(visits + 1)
    for v in range(2, visits + 1):
        rate = (horizon + 1.0) / (horizon + v)
        means[v] = (1.0 - rate) * means[v - 1] + rate / math.sqrt(v)
    return means


class HalfRandom(Policy):
    """Play a random action every other time, so that states are seen that a good policy avoids."""

    def __init__(self, policy: Policy, problem: Problem, rng: np.random.Generator) -> None:
        self.policy, self.random, self.rng = policy, RandomPolicy(problem.states, problem.actions), rng
        self.observation_space, self.action_space = policy.observation_space, policy.action_space
        self.time_variant = policy.time_variant

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Any) -> Any:
        own, drawn = (np.asarray(p.act(observations, steps, self.rng)) for p in (self.policy, self.random))
        other = self.rng.random(len(own)) < 0.5
        return np.where(other.reshape(-1, *[1] * (own.ndim - 1)), drawn, own)


class Later(Policy):
    """Begin at later steps than the first, one for each row."""

    def __init__(self, policy: PartitionPolicy, first: NDArray[np.int64]) -> None:
        self.policy, self.first = policy, first
        self.observation_space, self.action_space = policy.observation_space, policy.action_space
        self.time_variant = policy.time_variant

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Any) -> Any:
        last = self.policy.partition.trees - 1
        return self.policy.act(observations, np.minimum(steps + self.first, last), rng)


# What is measured.


def balls(policy: PartitionPolicy) -> tuple[Floats, Floats]:
    """Return Q and visits of the balls that were visited and not split."""
    all_, used = policy.partition.balls, policy.partition.n_balls
    leaf = (all_.first_child[:used] < 0) & (all_.visits[:used] > 0)
    return all_.q[:used][leaf], all_.visits[:used][leaf].astype(np.float64)


def visited(
    policy: PartitionPolicy, problem: Problem, rng: np.random.Generator
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return states of the plant that the half-random policy comes to, their observations and their steps."""
    starts = np.array([problem.dynamics.start(rng) for _ in range(50)])
    seen, steps = [], []
    for episode in play(HalfRandom(policy, problem, rng), problem, starts):
        seen.append(episode.observations[:-1])
        steps.append(np.arange(len(seen[-1])))
    rows = np.sort(rng.choice(sum(map(len, seen)), STATES, replace=False))
    observations, at = np.concatenate(seen)[rows], np.concatenate(steps)[rows]
    if observations.shape[1] == 3:  # Pendulum
        return np.column_stack([np.arctan2(*observations[:, 1::-1].T), observations[:, 2]]), observations, at
    return observations, observations, at


def values(policy: PartitionPolicy, observations: Floats, steps: NDArray[np.int64]) -> tuple[Floats, float]:
    """Return the highest Q of states, and the share of them where the least visited ball has it."""
    all_, highest, least = policy.partition.balls, [], []
    for seen, step in zip(observations, steps, strict=True):
        tree = int(step) if policy.time_variant else 0
        found = policy.partition.relevant(policy.states.standardise(seen).tolist(), tree).ball
        q, visits = all_.q[found], all_.visits[found]
        highest.append(q.max())
        least.append(visits[len(q) - 1 - np.argmax(q[::-1])] == visits.min())
    return np.array(highest), float(np.mean(least))


def returns(
    policy: PartitionPolicy,
    problem: Problem,
    states: Floats,
    steps: NDArray[np.int64],
    rng: np.random.Generator,
) -> Floats:
    """Return what the half-random policy gets from states on, in the mean of `PLAYS` episodes.

    It is that of H steps, or of those that are left where the policy counts time (AQL).
    """
    first = steps if policy.time_variant else np.zeros_like(steps)
    left = problem.horizon - first
    played = HalfRandom(Later(policy, first), problem, rng)
    totals = [
        [episode.rewards[:n].sum() for episode, n in zip(play(played, problem, states), left, strict=True)]
        for _ in range(PLAYS)
    ]
    return np.mean(totals, axis=0)


def correlation(x: Floats, y: Floats) -> float | None:
    """Return Pearson's correlation; None where one of the two does not vary."""
    if np.ptp(x) < 1e-9 * np.abs(x).max() or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def measure(agent: spaql.Agent, problem: Problem, scaling: float) -> dict[str, Any]:
    """Measure an agent, and judge it in a problem."""
    policy, horizon = agent.policy, problem.horizon
    q, visits = balls(policy)
    rng = np.random.default_rng(10_000 + agent.seed)
    states, observations, steps = visited(policy, problem, rng)
    highest, least = values(policy, observations, steps)
    value = np.minimum(highest, horizon)
    rest = q - horizon - scaling * mean_bonus(horizon, int(visits.max()))[visits.astype(np.int64)]
    return {
        "balls at H": float(np.mean(q >= horizon)),
        "states at H": float(np.mean(value >= horizon)),
        "Q, 1/sqrt(v)": correlation(q, 1 / np.sqrt(visits)),
        "Q, v": correlation(q, visits),
        "least visited": least,
        "V, return": correlation(value, returns(policy, problem, states, steps, rng)),
        "rest": [float(rest.min()), float(rest.max())],
        "fresh": spaql.evaluate(policy, problem, episodes=500, seed=20_000 + agent.seed).mean,
    }


# What is run.


@dataclass(frozen=True)
class Case:
    """A training, and what it is called in a table."""

    name: tuple[str, ...]
    make: Callable[[int], spaql.Agent]
    scaling: float
    judged: str
    iterations: int = 2_000
    measure: Callable[[spaql.Agent, Problem, float], dict[str, Any]] = measure


def case(
    problem: str, what: str, scaling: float, kind: type[spaql.Agent], iterations: int, **settings: Any
) -> Case:
    """Return a training with the paper's rollouts; `env` is what is trained on, if it is not the problem."""
    env = settings.pop("env", lambda: problem)

    def make(seed: int) -> spaql.Agent:
        return kind(env(), scaling=scaling, rollouts=rollouts(problem), seed=seed, **settings)

    return Case((NAMES[problem], what, f"{scaling:g}"), make, scaling, problem, iterations)


def study() -> list[Case]:
    chosen: Mapping[str, Mapping[str, float]] = {**CHOSEN, "pendulum-scaled": SCALED}
    return [
        case(problem, NAMES[algorithm], chosen[problem][algorithm], AGENTS[algorithm], 2_000)
        for problem in ("cartpole200", "pendulum-scaled", "pendulum", "pendulum5")
        for algorithm in ("spaql", "spaql-ts", "aql")
    ]


def no_bonus() -> list[Case]:
    def look(agent: spaql.Agent, problem: Problem, scaling: float) -> dict[str, Any]:
        """Compare what is kept with what was tried."""
        tried = agent.history["mean_return"][1:]
        return {
            "balls kept": agent.policy.partition.n_balls,
            "fresh": spaql.evaluate(agent, problem, episodes=500, seed=20_000 + agent.seed).mean,
            "untrained": float(agent.history["mean_return"][0]),
            "median evaluation": float(np.median(tried)),
            "highest evaluation": float(tried.max()),
        }

    return [
        replace(case("cartpole200", NAMES[name], 0, kind, 100), measure=look) for name, kind in AGENTS.items()
    ]


def frozen_lake() -> list[Case]:
    """The lake as it is: its observations are a list, and it has no compiled dynamics."""

    def look(agent: spaql.Agent, problem: Problem, scaling: float) -> dict[str, Any]:
        q, visits = balls(agent.policy)
        tried = agent.history["mean_return"][1:]
        return {
            "balls kept": agent.policy.partition.n_balls,
            "balls at H": float(np.mean(q >= agent.problem.horizon)) if len(q) else None,
            "Q, 1/sqrt(v)": correlation(q, 1 / np.sqrt(visits)) if len(q) else None,
            "untrained": float(agent.history["mean_return"][0]),
            "evaluations of 0": float(np.mean(tried == 0)),
            "best seen": float(agent.history["best_return"][-1]),
            "fresh": spaql.evaluate(agent, episodes=500, seed=20_000 + agent.seed).mean,
        }

    def lake(name: str, kind: type[spaql.Agent], env: str, **options: Any) -> Case:
        def make(seed: int) -> spaql.Agent:
            return kind(make_problem(env, options=options), scaling=20, seed=seed)

        return Case((name, NAMES[kind.learner_type.name], "20"), make, 20, env, 100, look)

    return [
        lake("4 × 4, not slippery", spaql.SPAQL, "FrozenLake-v1", is_slippery=False),
        lake("4 × 4", spaql.SPAQL, "FrozenLake-v1"),
        lake("8 × 8", spaql.SPAQL, "FrozenLake8x8-v1"),
    ]


def changes() -> list[Case]:
    cart, pole = "cartpole200", "pendulum"
    plain, ending, discounted = spaql.SPAQL, EndingSPAQL, DiscountedSPAQL
    costs = {"reward_range": (0.0, HIGHEST_COST)}
    return [
        case(cart, "SPAQL", 20, plain, 500),
        case(cart, "SPAQL-TS", 20, spaql.SPAQLTS, 500),
        case(cart, "every step costs 1", 0.4, plain, 500, reward_range=(2.0, 3.0)),
        *(case(cart, "a fall costs H", xi, plain, 500, env=falling) for xi in (20, 0.4)),
        *(case(cart, "an end is worth 0", xi, ending, 500) for xi in (20, 4, 0.4)),
        case(cart, "an end is worth 0, discount 0.99", 4, ending, 500, discount=0.99),
        *(case(pole, "SPAQL", xi, plain, 500) for xi in (4, 0)),
        *(case(pole, "rewards in [-1, 0]", xi, plain, 500, **costs) for xi in (4, 0)),
        *(case(pole, "discount 0.99", xi, discounted, 500, discount=0.99) for xi in (4, 0)),
    ]


PARTS = {"study": study, "no-bonus": no_bonus, "frozen-lake": frozen_lake, "changes": changes}


def table(rows: list[dict[str, Any]]) -> str:
    """Return the means over seeds as Markdown; ± is the standard deviation over seeds."""
    measures = [name for name in HEADINGS if name in rows[0]["measures"]]
    head = ["problem", "agent", "$\\xi$", *(HEADINGS[name] for name in measures)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name in dict.fromkeys(tuple(row["name"]) for row in rows):
        some = [row["measures"] for row in rows if tuple(row["name"]) == name]
        cells = [shown(measure, [one[measure] for one in some]) for measure in measures]
        lines.append("| " + " | ".join([*name, *cells]) + " |")
    return "\n".join(lines)


HEADINGS = {
    "balls kept": "balls that are kept",
    "balls at H": "balls with $Q \\ge H$",
    "states at H": "states with $V = H$",
    "Q, 1/sqrt(v)": "correlation of $Q$ with $1/\\sqrt v$",
    "Q, v": "of $Q$ with $v$",
    "least visited": "greedy is least visited",
    "rest": "left",
    "V, return": "correlation of $V$ with the return",
    "median evaluation": "evaluations while training: median",
    "highest evaluation": "highest",
    "evaluations of 0": "evaluations that are 0",
    "best seen": "best seen",
    "fresh": "fresh return",
}
SHARES = ("balls at H", "states at H", "least visited", "evaluations of 0")


def shown(measure: str, numbers: list[Any]) -> str:
    """Write what several seeds came to."""
    if measure == "rest":
        return f"{min(n[0] for n in numbers):.2f} to {max(n[1] for n in numbers):.2f}".replace(
            "-0.00", "0.00"
        )
    there = [n for n in numbers if n is not None]
    if not there:
        return "–"
    mean = float(np.mean(there))
    if measure in SHARES:
        return f"{mean:.1%}".replace("100.0%", "100%").replace("%", " %")
    if measure == "balls kept":
        return f"{mean:,.0f}"
    if abs(mean) <= 1.0:
        return f"{mean:.3f}"
    return f"{mean:,.1f} ± {np.std(there, ddof=1):.1f}" if measure == "fresh" else f"{mean:,.1f}"


# The figure.


@dataclass(frozen=True)
class Panel:
    """A column of the figure."""

    title: str
    case: Case
    rewards: tuple[float, float] | None
    """The lowest and the highest, where Q is known from them and the visits."""
    colour: str


def panels() -> list[Panel]:
    plain, scaled = COLOURS["spaql"], case("pendulum-scaled", "SPAQL", 10, spaql.SPAQL, 2_000)
    ending = case("cartpole200", "an end is worth 0", 4, EndingSPAQL, 500)
    return [
        Panel("CartPole\nreward 1", case("cartpole200", "SPAQL", 20, spaql.SPAQL, 2_000), (1.0, 1.0), plain),
        Panel("Pendulum, scaled\nrewards in [0, 1]", scaled, (0.0, 1.0), plain),
        Panel("Pendulum\nrewards in [−16, 0]", case("pendulum", "SPAQL", 4, spaql.SPAQL, 2_000), None, plain),
        Panel("CartPole, changed\nan end is worth 0", ending, None, COLOURS["spaql-ts"]),
    ]


def draw(path: Path) -> None:
    """Draw Q against visits, and V against returns, for one agent of each panel."""
    with styled():
        figure = new_figure(
            "Where no reward is negative, Q counts visits and V is the same in every state",
            "A dot is a ball (above) or a state (below). r is the correlation of Q with 1/√visits (above), "
            "and of V with the return\n(below). Black: Q by the theorem, from the visits and the lowest and "
            "highest reward. Dashed: the horizon H = 200.",
            5.2,
        )
        figure.get_layout_engine().set(h_pad=0.07, w_pad=0.03)
        axes = figure.subplots(2, 4)
        for column, panel in enumerate(panels()):
            problem = make_problem(panel.case.judged)
            agent = panel.case.make(0).learn(iterations=panel.case.iterations, progress_bar=False)
            draw_balls(axes[0, column], panel, agent.policy)
            draw_states(axes[1, column], panel, agent.policy, problem)
        axes[0, 0].set_ylabel("Q of a ball")
        axes[1, 0].set_ylabel("V(x) of a state")
        figure.savefig(path, dpi=200, metadata={"Date": None} if path.suffix == ".svg" else None)


def draw_balls(ax: Any, panel: Panel, policy: PartitionPolicy) -> None:
    """Draw Q against visits, with what the theorem says of them."""
    q, visits = balls(policy)
    ax.axhline(200, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    ax.scatter(visits, q, s=7, color=panel.colour, linewidth=0, alpha=0.5, zorder=2, rasterized=True)
    if panel.rewards is not None:
        v = np.unique(np.geomspace(1, 1_000, 300).astype(np.int64))
        bonus = 200 + panel.case.scaling * mean_bonus(200, int(v[-1]))[v]
        low, high = (bonus + reward for reward in panel.rewards)
        ax.fill_between(v, low, high, color="#dddddd", linewidth=0, zorder=1)
        for edge in (low, high):
            ax.plot(v, edge, color="black", linewidth=0.7, zorder=3)
        ax.set_ylim(200 - 0.12 * np.ptp(high), high.max() + 0.05 * np.ptp(high))
    else:
        ax.set_ylim(-30, 215)
    ax.set_xscale("log")
    ax.set_xlim(0.8, 1_000)
    ax.set_xticks([1, 10, 100, 1_000], ["1", "10", "100", "1k"])
    ax.minorticks_off()
    ax.locator_params(axis="y", nbins=6, integer=True)
    ax.yaxis.set_major_formatter(number_ticks())
    ax.set_title(panel.title, fontsize=9.5)
    ax.set_xlabel("visits of the ball")
    related = correlation(q, 1 / np.sqrt(visits))
    ax.text(0.97, 0.8 if panel.rewards else 0.03, f"r = {related:.3f}", transform=ax.transAxes, ha="right")


def draw_states(ax: Any, panel: Panel, policy: PartitionPolicy, problem: Problem) -> None:
    """Draw V against the return from states on."""
    rng = np.random.default_rng(10_000)
    states, observations, steps = visited(policy, problem, rng)
    value = np.minimum(values(policy, observations, steps)[0], problem.horizon)
    total = returns(policy, problem, states, steps, rng)
    ax.axhline(200, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    ax.scatter(total, value, s=7, color=panel.colour, linewidth=0, alpha=0.5, zorder=2, rasterized=True)
    ax.set_ylim(-30, 215)
    ax.set_xlabel("return from there")
    ax.xaxis.set_major_formatter(number_ticks())
    related = correlation(value, total)
    text = "V is constant" if related is None else f"r = {related:.3f}"
    ax.text(0.97, 0.05, text, transform=ax.transAxes, ha="right")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS, help="all by default")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("what_they_learn.jsonl"))
    parser.add_argument("--figure", type=Path, help="draw the figure into this file instead")
    options = parser.parse_args()
    if options.figure:
        draw(options.figure)
        return
    rows = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    for part in options.part or PARTS:
        for one in PARTS[part]():
            done = {row["seed"] for row in rows if (row["part"], tuple(row["name"])) == (part, one.name)}
            for seed in sorted(set(range(options.seeds)) - done):
                agent = one.make(seed).learn(iterations=one.iterations, progress_bar=False)
                measures = one.measure(agent, make_problem(one.judged), one.scaling)
                rows.append({"part": part, "name": one.name, "seed": seed, "measures": measures})
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
        print(f"\n{part}\n\n{table([row for row in rows if row['part'] == part])}", flush=True)


if __name__ == "__main__":
    main()
