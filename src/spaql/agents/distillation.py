"""Distillation: a policy of any kind becomes a small rule tree, which is then improved on the simulator."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spaql.agents.experts import Expert, expert_of
from spaql.agents.registry import TreeSearch
from spaql.agents.run_folder import save_run
from spaql.algorithms.imitation import Imitation, imitate
from spaql.archive import write_atomically
from spaql.controllers import Controller, controller_of
from spaql.controllers.policy import PathLike
from spaql.problems import EnvironmentLike, make_problem
from spaql.simulate import EpisodeRunner, Evaluation, Phase, fresh_episodes
from spaql.simulate.returns import Interactions
from spaql.stats import mean_ci95
from spaql.values import real_number, whole_number

REPORT_FILE = "distillation.json"
"""The file on the origin of a distilled run, next to the usual files of its folder."""


@dataclass(frozen=True, eq=False)
class Distillation:
    """A tree distilled from a policy, with the returns of both in the same fresh episodes."""

    agent: TreeSearch
    """The agent that improved the tree; without improvement, the imitation."""
    imitation: Controller
    """The tree before it was improved."""
    agreement: float
    """Agreement of the imitation with the expert's actions (see `spaql.algorithms.imitation.Imitation`)."""
    labelled: int
    """States that were labelled with the expert's actions."""
    expert: Expert
    """The policy that was distilled."""
    steps: Mapping[str, int]
    """Simulator steps by phase: `expert`, `trees` that gather states, `comparison` of trees by size,
    `search`, and `judgement`, the final evaluation, from which nothing was learned."""
    expert_returned: Evaluation
    imitation_returned: Evaluation
    returned: Evaluation
    """Of the agent."""

    @property
    def tree(self) -> Controller:
        """The improved tree."""
        return controller_of(self.agent, minimise=False)

    @property
    def kept(self) -> float:
        """The fraction of the expert's return that the tree retains.

        It is 1 minus their difference, divided by the magnitude of the expert's return: more than 1 if the
        tree is better; NaN if the expert's return is 0.
        """
        before = self.expert_returned.mean
        return 1.0 + (self.returned.mean - before) / abs(before) if before else math.nan

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a run folder, with `distillation.json`."""
        save_run(self.agent, Path(folder))
        text = json.dumps(self.as_data(), indent=2, allow_nan=False) + "\n"
        write_atomically(Path(folder) / REPORT_FILE, text.encode())

    def as_data(self) -> dict[str, Any]:
        """Return the sizes, returns and steps as plain data."""
        off, half = mean_ci95(self.returned.returns - self.expert_returned.returns)
        return {
            "expert": {"from": self.expert.name, **_data(self.expert_returned)},
            "imitation": {
                "leaves": self.imitation.n_leaves,
                "agreement": self.agreement,
                "labelled_states": self.labelled,
                **_data(self.imitation_returned),
            },
            "tree": {
                "leaves": self.tree.n_leaves,
                "numbers": self.tree.n_numbers,
                **_data(self.returned),
            },
            "difference": {"mean": off, "ci95": _or_none(half)},
            "kept": _or_none(self.kept),
            "steps": dict(self.steps),
            "clipped_actions": self.expert.clipped,
        }


def distil(
    policy: Any,
    env: EnvironmentLike,
    *,
    max_leaves: int = 10,
    rounds: int = 5,
    episodes: int = 20,
    loss: float = 0.02,
    total_timesteps: int = 1_000_000,
    judged_episodes: int = 100,
    seed: int = 0,
    parallel: bool = False,
    vec_normalize: PathLike | None = None,
    progress_bar: bool = False,
) -> Distillation:
    """Turn a policy into a rule tree by dataset aggregation, and improve it on the simulator.

    The policy is run, then trees fitted to it. The states that they visit are labelled with the policy's
    actions (DAgger). The smallest tree with nearly the same return is then improved by `spaql.TreeSearch`.

    Parameters
    ----------
    policy
        A Stable-Baselines3 (`.zip`, which contains pickles: read only files that you trust) or ONNX file
        (`.onnx`); `module:name`; a run folder or file of spaql; a policy, agent or model with `predict`; or a
        function from one observation to one action.
    env
        The environment, as `spaql.make_problem` takes it.
    max_leaves
        Largest number of leaves.
    rounds
        Rounds in which trees are run and the states labelled, after the round of the policy itself.
    episodes
        Episodes of a round, and of each tree that is compared.
    loss
        Fraction of the policy's return that a smaller tree may lose before it is improved.
    total_timesteps
        Simulator steps for the improvement; 0 for none.
    judged_episodes
        Fresh episodes in which policy and trees are evaluated, the same for all.
    seed
        Seed of all randomness.
    parallel
        Run episodes in one process per core.
    vec_normalize
        The file of Stable-Baselines3's `VecNormalize`, for a network of normalised observations.
    progress_bar
        Show the progress of the improvement.

    Examples
    --------
    >>> def push(observation):
    ...     return int(observation[2] + 0.3 * observation[3] > 0)
    >>> distilled = distil(push, "cartpole200", rounds=1, total_timesteps=0, judged_episodes=20)
    >>> distilled.tree.n_leaves, distilled.kept > 0.9
    (1, True)
    """
    max_leaves = whole_number("max_leaves", max_leaves, least=1, most=64)
    rounds = whole_number("rounds", rounds, least=0)
    episodes = whole_number("episodes", episodes, least=1)
    judged_episodes = whole_number("judged_episodes", judged_episodes, least=2)
    total_timesteps = whole_number("total_timesteps", total_timesteps, least=0)
    loss = real_number("loss", loss, least=0)
    problem = make_problem(env, measured=False)
    problem = replace(problem, parallel=parallel or problem.parallel)
    TreeSearch(problem, seed=seed, max_leaves=max_leaves)  # refuses spaces before any episode is run
    expert = expert_of(policy, problem, vec_normalize=vec_normalize)
    with closing(EpisodeRunner(problem, episodes)) as runner:
        imitation = imitate(expert, problem, runner, leaves=max_leaves, rounds=rounds, loss=loss, seed=seed)
    problem = replace(problem, interactions=problem.interactions + runner.interactions.total)
    agent = TreeSearch(problem, seed=seed, max_leaves=max_leaves).start_from(imitation.tree)
    if total_timesteps:
        agent.learn(total_timesteps, progress_bar=progress_bar)
    return _evaluated(agent, expert, imitation, runner.interactions, judged_episodes, seed)


def _evaluated(
    agent: TreeSearch,
    expert: Expert,
    imitation: Imitation,
    interactions: Interactions,
    episodes: int,
    seed: int,
) -> Distillation:
    """Return a distillation, whose policies are evaluated from the same fresh starts."""
    policies = (expert, imitation.tree, agent.policy)
    evaluations = [fresh_episodes(policy, agent.problem, episodes, seed) for policy in policies]
    steps = {
        "expert": interactions[Phase.EXPERT],
        "trees": interactions[Phase.TRAINING],
        "comparison": interactions[Phase.OWN_PLAY],
        "search": agent.training_steps,
        "judgement": sum(evaluation.steps for evaluation in evaluations),
    }
    return Distillation(
        agent, imitation.tree, imitation.agreement, imitation.labelled, expert, steps, *evaluations
    )


def _data(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "mean": evaluation.mean,
        "ci95": _or_none(evaluation.ci95),
        "worst": float(evaluation.returns.min()),
        "episodes": len(evaluation.returns),
    }


def _or_none(x: float) -> float | None:
    return x if math.isfinite(x) else None
