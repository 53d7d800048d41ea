"""The safe action is for readings that cannot be, not for noise at a bound; and it is counted."""

import dataclasses
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium.spaces import Box, Discrete

import spaql
import spaql.export
from export_forms import FORMS
from spaql import Controller, SettingError
from spaql.cli import main
from spaql.controllers import Laws
from spaql.export import EXPORTERS, ExportedPolicy
from spaql.export.machine import limits, machine_of
from spaql.export.test_states import comparison_points

GOLDEN = Path(__file__).parents[1] / "golden" / "0.1" / "controller-plantree-pendulum.spaql"


def stump(low: float = -1.0, high: float = 1.0) -> Controller:
    """One law, u = 1 + x, of one number."""
    return Controller(
        laws=Laws(np.ones((1, 1, 1)), np.ones((1, 1))),
        observation_space=Box(low, high, (1,), np.float64),
        action_space=Box(-9.0, 9.0, (1,), np.float64),
    )


def choices(low: float = -1.0, high: float = 1.0) -> Controller:
    """One choice: the second of three."""
    space = Box(low, high, (1,), np.float64)
    return Controller(laws=[1], observation_space=space, action_space=Discrete(3))


@pytest.mark.parametrize("form", FORMS)
def test_what_lies_just_beyond_a_bound_is_still_decided_by_the_policy(form: str, tmp_path: Path) -> None:
    target, number = FORMS[form]
    controller = machine_of(choices(), number, 2)
    run = target.load(controller, target.write(controller, "controller"), "controller", tmp_path)
    numbers = controller.number
    limit = numbers.neighbour(numbers.up(math.nextafter(1.2, 2)), upper=False)  # the last one within
    inside = [-1.0, 1.0, 1.001, -1.001, -1.19, limit]
    outside = [
        numbers.neighbour(limit, upper=True),
        numbers.neighbour(numbers.up(-1.2), upper=False),
        1.21,
    ]
    inputs = numbers.inputs(np.array([[x] for x in inside + outside]))
    given = run(np.hstack([np.zeros((len(inputs), 1)), inputs]))
    assert given.ravel().tolist() == [1.0] * len(inside) + [2.0] * len(outside)


@pytest.mark.parametrize("number", ["double", "float"])
def test_the_limits_and_their_neighbours_are_compared(number: str) -> None:
    controller = machine_of(choices(), number, 2)
    numbers = controller.number
    shown = np.concatenate([numbers.values(inputs) for _, inputs in comparison_points(controller, 0)]).ravel()
    for limit in (-1.2, math.nextafter(1.2, 2)):
        first = numbers.up(limit)  # the first number at or above it
        assert {first, numbers.neighbour(first, upper=False)} <= set(shown.tolist())


def test_what_has_no_range_is_not_widened() -> None:
    low, high = limits(Box(np.array([0.0, -3e38, -np.inf]), np.array([np.inf, 3e38, 5.0]), dtype=np.float64))
    assert (low.tolist(), high.tolist()) == ([0.0, -np.inf, -np.inf], [np.inf, np.inf, 5.0])
    assert [end.tolist() for end in limits(Discrete(5, start=2))] == [[2.0], [6.0]]
    assert [end.tolist() for end in limits(Box(-1.0, 1.0, (1,)), 0.0)] == [[-1.0], [1.0]]


@pytest.mark.parametrize("target", ["c", "st", "onnx", "python"])
def test_the_head_says_how_many_leaves_the_policy_has_and_what_the_limits_are(
    target: str, tmp_path: Path
) -> None:
    tree = spaql.controller_of(spaql.Design.load(GOLDEN))
    exporter, suffix = EXPORTERS[target]
    proof = exporter(tree, tmp_path / f"controller{suffix}", safe_action=0, points=100)
    text = (tmp_path / f"controller{suffix}").read_bytes().decode(errors="ignore")
    assert int(re.search(r"controller\.\w+: (\d+) lea", text)[1]) == tree.n_leaves == proof.leaves
    assert f"{tree.depth} questions at most" in text
    for name, limit in (("cos(angle)", 1.2), ("speed [rad/s]", 9.6)):
        assert f"- {name}: below {-limit:g} or above {limit:g}" in text
    assert "10 % of its range" in text


def test_what_is_played_is_what_was_exported(tmp_path: Path) -> None:
    """Observations far beyond the limits: the file, called one by one, answers with the same bits."""
    controller = spaql.Design.load(GOLDEN)
    tree = spaql.controller_of(controller)
    spaql.export.python(tree, tmp_path / "controller.py", safe_action=[1.5], points=100)
    space: dict = {}
    exec((tmp_path / "controller.py").read_text(), space)
    exported = ExportedPolicy(tree, safe_action=[1.5])
    answers = []

    class Watched(ExportedPolicy):
        def act(self, observations, steps, rng):
            played = super().act(observations, steps, rng)
            for row, action, safe in zip(
                observations, played, self.is_safe_action(observations), strict=True
            ):
                answers.append((np.float32(space["act"](row.tolist())[0]) == action[0], safe, action[0]))
            return played

    observations = np.random.default_rng(0).uniform(-1.3, 1.3, (1000, 3)) * [1.0, 1.0, 8.0]
    Watched(tree, safe_action=[1.5]).act(observations.astype(np.float32), np.zeros(1000, np.int64), None)
    equal, safe, actions = map(np.array, zip(*answers, strict=True))
    assert equal.all()
    assert 0 < safe.sum() < len(safe)
    assert (actions[safe] == np.float32(1.5)).all()
    assert exported.is_safe_action(np.array([[0.0, 0.0, 9.7], [1.1, 0.0, 0.0]])).tolist() == [True, False]


def command(*words: str) -> dict:
    result = CliRunner().invoke(
        main, ["export", str(GOLDEN), "--to", "python", *words, "--points", "100", "--json"]
    )
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_the_command_writes_the_safe_action_with_its_limits(tmp_path: Path) -> None:
    proof = command("--out", str(tmp_path), "--safe-action", "0")
    assert (proof["tolerance"], proof["limits"][2]) == (0.1, [-9.6, 9.6])


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    for wrong in (-0.1, math.nan, math.inf):
        with pytest.raises(SettingError, match="share of each range"):
            spaql.export.python(stump(), tmp_path / "controller.py", safe_action=[0.0], tolerance=wrong)
    endless = dataclasses.replace(stump(), action_space=Box(-np.inf, np.inf, (1,)))
    with pytest.raises(SettingError, match="finite number"):
        spaql.export.python(endless, tmp_path / "controller.py", safe_action=[math.inf])
    result = CliRunner().invoke(
        main, ["export", str(GOLDEN), "--to", "c", "--margin", "0.2", "--out", str(tmp_path)]
    )
    assert result.exit_code > 0
    assert "give --safe-action" in result.output
