"""Every tool takes every kind of controller, except where its question has no meaning."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium.spaces import Box

import spaql
from spaql.cli import main
from spaql.controllers import Controller, Error, Integral, LastAction, Laws, Observed, SinceChange
from spaql.export import controller_from_json

ONE_CUT = {"threshold": [0.0] * 3, "left": [1, -1, -1], "right": [2, -1, -1], "leaf": [-1, 0, 1]}
NAMES = ["cart position", "cart speed", "pole angle", "pole speed"]


STEPS = 20
"""Of an episode: robustness takes more than a thousand of them."""


def on(env: str, **fields: object) -> spaql.Design:
    """Return a controller for an environment, with its spaces and names."""
    problem = spaql.make_problem(env, horizon=STEPS)
    controller = Controller(
        observation_space=problem.states.space,
        action_space=problem.actions.space,
        observations=problem.states.names,
        actions=problem.actions.names,
        **fields,
    )
    return spaql.Design(controller, problem)


def partition() -> spaql.Agent:
    agent = spaql.SPAQLTS("cartpole200", horizon=STEPS, scaling=20, rollouts=5, seed=1)
    return agent.learn(iterations=40, progress_bar=False)


def actions() -> spaql.Design:
    return on("CartPole-v1", feature=[2, -1, -1], **ONE_CUT, laws=[0, 1])


def laws() -> spaql.Design:
    gain = np.array([[[0.0, -8.0, -2.0]], [[0.0, 0.0, 1.0]]])
    return on("Pendulum-v1", feature=[0, -1, -1], **ONE_CUT, laws=Laws(gain, np.zeros((2, 1))))


def mirrored() -> spaql.Design:
    """Cut at sin(angle) = 0, and by the speed on either side."""
    gain = np.array([[[0.0, -8.0, -2.0]], [[0.0, 0.0, 1.0]]])
    nodes = {
        "feature": [1, 2, 2, -1, -1],
        "threshold": [0.0, np.nextafter(-1.0, 2.0), 1.0, 0.0, 0.0],
        "left": [1, 4, 3, -1, -1],
        "right": [2, 3, 4, -1, -1],
        "leaf": [-1, -1, -1, 0, 1],
    }
    return on("Pendulum-v1", **nodes, laws=Laws(gain, np.zeros((2, 1))))


def scores() -> spaql.Design:
    gain = np.array([[[0.0, 0.0, 0.0, 0.0], [0.1, 0.2, 4.0, 1.0]]])
    return on("CartPole-v1", laws=Laws(gain, np.zeros((1, 2))))


def memory() -> spaql.Design:
    """A PI controller with another gain where the error is large."""
    features = (Error("error", "set-point", "position"), Integral("integral", "error", limit=10.0))
    gain = np.array([[[20.0, 2.0]], [[12.0, 1.0]]])
    nodes = ONE_CUT | {"threshold": [0.5, 0.0, 0.0]}
    return on(
        "spaql/DCMotor-v0",
        feature=[0, -1, -1],
        **nodes,
        laws=Laws(gain, np.zeros((2, 1))),
        features=features,
        sample_time=0.02,
        rate_limit=(400.0,),
    )


def memory_with_discrete_actions() -> spaql.Design:
    features = (
        *map(Observed, NAMES),
        LastAction("last action", "action"),
        SinceChange("since change", "action", 1.0),
    )
    gain = np.array([[[0.0] * 6, [0.1, 0.2, 4.0, 1.0, -0.05, 0.01]], [[0.0] * 6, [0.1, 0.3, 6.0, 1.0, 0, 0]]])
    nodes = ONE_CUT | {"feature": [4, -1, -1], "threshold": [0.5, 0.0, 0.0]}
    return on("CartPole-v1", **nodes, laws=Laws(gain, np.zeros((2, 2))), features=features, sample_time=0.02)


KINDS: dict[str, Callable[[], spaql.Agent | spaql.Design]] = {
    one.__name__: one
    for one in (partition, actions, laws, mirrored, scores, memory, memory_with_discrete_actions)
}
PLANES = {
    "laws": ("angle", "speed"),
    "mirrored": ("angle", "speed"),
    "memory": ("position", "speed"),
}
"""Two observations of each plant."""
LEAF = {"partition": ("--do", "1"), "actions": ("--do", "1"), "scores": ("--do", "push left")}
AT = {"laws": "1,0,0", "mirrored": "1,0,0", "memory": "0.1,0,0.5"}
TOOLS = {
    "show": "show RUN --numbers --digits 3",
    "show at an observation": "show RUN --at AT",
    "page": "page RUN --out OUT.html",
    "tree": "draw RUN tree --out OUT.svg",
    "map": "draw RUN map --x X --y Y --out OUT.svg",
    "phase portrait": "draw RUN phase --x X --y Y --episodes 2 --out OUT.svg",
    "response": "draw RUN response --beside '' --out OUT.svg",
    "evaluate": "evaluate RUN --episodes 3",
    "compare with pid and lqr": "evaluate RUN --episodes 2 --beside pid,lqr --steps 3000",
    "stress": "stress RUN --episodes 20 STARTS",
    "robustness": "stress RUN --robustness --episodes 2",
    "simplify": "simplify RUN --episodes 2 --out OUT.spaql",
    "edit": "edit RUN --leaf 1 EDIT --episodes 2 --out OUT.spaql",
    "improve": "improve RUN --steps 4000 --episodes 2 --quiet --out OUT",
    "distil": "distil RUN --env ENV --steps 0 --rounds 1 --episodes 2 --out OUT",
    "verify": "verify RUN --seconds 1 --quiet",
}
WITHOUT_SETPOINTS = [name for name in KINDS if name != "memory"]
REFUSED = {(kind, "response"): "no set-points to follow" for kind in WITHOUT_SETPOINTS} | {
    (kind, tool): reason
    for kind in ("memory", "memory_with_discrete_actions")
    for tool, reason in {
        "distil": "must be a function of the observation",  # it is a tree of features already
        "verify": "memory",
    }.items()
}
"""What has no meaning, and proofs with memory, which are not built yet."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("kinds")
    for name, make in KINDS.items():
        make().save(folder / f"{name}.spaql")
    return {name: folder / f"{name}.spaql" for name in KINDS}


TARGETS = (
    "python",
    "json",
    "c",
    "st",
    "onnx",
    "rust",
    "javascript",
    "fmu",
    "plcopen",
    "octave",
    "micropython",
)


def words_of(kind: str, tool: str, run: Path, out: Path) -> list[str]:
    x, y = PLANES.get(kind, ("pole angle", "pole speed"))
    edit = LEAF.get(kind) or ("--offset", "push left=0.1" if "discrete" in kind else "0.1")
    put = {"RUN": str(run), "X": x, "Y": y, "AT": AT.get(kind, "0,0,0.1,0"), "OUT": str(out)}
    put["ENV"] = {"laws": "Pendulum-v1", "mirrored": "Pendulum-v1", "memory": "spaql/DCMotor-v0"}.get(
        kind, "CartPole-v1"
    )
    words: list[str] = []
    for word in shlex.split(TOOLS[tool]):
        if word == "STARTS":
            words += ["--low", "-1,0,0,0,0", "--high", "1,0,0,0,0"] if kind == "memory" else []
            continue
        words += edit if word == "EDIT" else [put.get(word, word.replace("OUT", str(out)))]
    return words


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("kind", KINDS)
def test_it_takes_it(kind: str, tool: str, files: dict[str, Path], tmp_path: Path) -> None:
    done = CliRunner().invoke(main, words_of(kind, tool, files[kind], tmp_path / "out"))
    if (kind, tool) in REFUSED:
        assert done.exit_code == 1
        assert REFUSED[kind, tool] in done.output
    else:
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    "target", [*TARGETS[:2], *(pytest.param(name, marks=pytest.mark.long) for name in TARGETS[2:])]
)
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_exported(kind: str, target: str, files: dict[str, Path], tmp_path: Path) -> None:
    words = ["export", str(files[kind]), "--to", target, "--points", "2000", "--out", str(tmp_path)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "partition"])
def test_a_controller_comes_back_from_every_file(kind: str, files: dict[str, Path], tmp_path: Path) -> None:
    design = spaql.load(files[kind])
    CliRunner().invoke(main, ["export", str(files[kind]), "--to", "json", "--out", str(tmp_path)])
    space = design.problem.states.space
    assert isinstance(space, Box)
    near = Box(np.maximum(space.low, -5.0), np.minimum(space.high, 5.0), seed=0)
    observations = np.array([near.sample() for _ in range(200)])
    played = [
        [one.act(row[np.newaxis], np.zeros(1, np.int64), None) for row in observations]
        for source in (design.controller, controller_from_json(tmp_path / "controller.json"))
        for one in [source.for_episodes(1)]
    ]
    assert np.array_equal(*played)
    assert json.loads((tmp_path / "controller.json").read_text())
