"""Every shipped problem passes its checks, and every check catches an environment that was made for it."""

import math
import random
import re
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium import spaces

import spaql
from spaql.checks import PROBLEM_CHECKS, ProblemCase
from spaql.cli import main
from spaql.problems import PRESETS
from spaql.problems.dynamics import DYNAMICS
from spaql.registration import HORIZONS

CLASSIC = [
    name.removeprefix("spaql/") for name in DYNAMICS if name.startswith("spaql/") and name not in HORIZONS
]
SHIPPED = [*PRESETS, *CLASSIC]  # the engineering plants are in problems/test_engineering.py
SHARED: list[float] = [0.0]


class Sound(gymnasium.Env):
    """Two numbers, one of them pushed by the action; it terminates when that one leaves (-0.9, 0.9)."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def seen(self) -> Any:
        return self.state.astype(np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.state = self.np_random.uniform(-0.5, 0.5, 2)
        return self.seen(), {}

    def step(self, action):
        self.steps += 1
        self.state = self.state.copy()
        self.state[0] += 0.1 * float(action[0])
        self.state[1] = self.np_random.uniform(-0.5, 0.5)
        return self.seen(), float(-abs(self.state[0])), bool(abs(self.state[0]) > 0.9), False, {}


def spoiled(**methods: Callable[..., Any]) -> Callable[[], gymnasium.Env]:
    """Give an environment some of whose methods are faulty."""
    return type("Faulty", (Sound,), methods)


def answer(index: int, value: Any) -> Callable[[], gymnasium.Env]:
    """Give an environment that answers every step with one thing that is wrong."""

    def step(self, action):
        result = list(Sound.step(self, action))
        result[index] = value(self, result[index]) if callable(value) else value
        return tuple(result)

    return spoiled(step=step)


def overwrites(self):
    if not hasattr(self, "buffer"):
        self.buffer = np.zeros(2, np.float32)
    self.buffer[:] = self.state
    return self.buffer


def draws(source: Callable[[], float]) -> Callable[[], gymnasium.Env]:
    return answer(1, lambda env, reward: reward + 1e-3 * source())


def reset_without_seed(self, *, seed=None, options=None):
    return Sound.reset(self, seed=seed if not hasattr(self, "steps") else None)


def reset_without_info(self, *, seed=None, options=None):
    return Sound.reset(self, seed=seed)[0], 0


def writes(self, action):
    action *= 0.5
    return Sound.step(self, action)


def counted(self, action):
    result = Sound.step(self, 0 * action)
    return *result[:2], self.steps >= 10, *result[3:]


def never_truncated(self, action):
    return Sound.step(self, 0 * action)


def one_way(self, action):
    if action[0] == self.action_space.high[0]:
        raise ValueError("too much")
    return Sound.step(self, action)


def far_away(self, action):
    """Fail where only a push in the same direction for long leads."""
    self.pushed = (self.pushed if self.steps else 0.0) + float(action[0])
    if self.pushed > 15:
        raise ValueError("the spring broke")
    return Sound.step(self, 0 * action)


def runs_away(self, action):
    """A cart that random pushes keep slow."""
    self.speed = (self.speed if self.steps else 0.0) + 0.05 * float(action[0])
    result = Sound.step(self, 0 * action)
    return np.float32([self.speed, 0.0]), *result[1:]


def swings(self, action):
    """A swing whose bounds are left only by pushes in time with it."""
    x, v = self.swing if self.steps else (0.0, 0.0)
    v += 0.2 * (float(action[0]) * 0.1 - x)
    self.swing = (x + 0.2 * v, v)
    result = Sound.step(self, 0 * action)
    return np.float32([self.swing[0], 0.0]), *result[1:]


def shares(self, action):
    SHARED[0] += 0.01
    result = Sound.step(self, action)
    return np.float32([result[0][0], 0.001 * math.sin(1e3 * SHARED[0])]), *result[1:]


def problem(make: Callable[[], gymnasium.Env] = Sound, **options: Any) -> spaql.Problem:
    return spaql.make_problem(make(), **({"horizon": 40} | options))


def with_changes(found: spaql.Problem, **changes: Any) -> spaql.Problem:
    """Give a problem with things that `make_problem` would not do."""
    for name, value in changes.items():
        object.__setattr__(found, name, value)
    return found


def wide_bounds() -> spaql.Problem:
    def init(self):
        Sound.__init__(self)
        self.observation_space = spaces.Box(-1e6, 1e6, (2,), np.float32)

    return problem(spoiled(__init__=init))


def plant_with_a_memory() -> spaql.Problem:
    """A plant that is compiled while it has one gain, and written to have another."""
    gain = 1.0

    def start(rng):
        return (rng.uniform(-1.0, 1.0),)

    def step(state, action):
        return (state[0] + gain * action[0],), 0.0, False

    plant = spaql.Dynamics(
        id="test/Memory-v0",
        start=start,
        step=step,
        observations={"x": (-3, 3)},
        actions={"u": (-1, 1)},
        horizon=10,
    )
    made = spaql.make_problem(plant)
    one = np.ones(1, np.bool_)
    plant.plant.step_rows(one, np.zeros((1, 1)), np.zeros((1, 1)))
    gain = 2.0
    return made


def reference_out_of_reach() -> spaql.Problem:
    return problem(reference=[5.0, 0.0])


def many_of_another_kind() -> spaql.Problem:
    class Odd(gymnasium.vector.SyncVectorEnv):
        def step(self, actions):
            result = super().step(actions)
            return result[0], result[1][:, np.newaxis], *result[2:]

    found = problem()
    return with_changes(found, make_vector=lambda n: Odd([found.make] * n))


def broken_make() -> spaql.Problem:
    def fail():
        raise RuntimeError("no licence")

    return with_changes(problem(), make=fail)


def long_episodes() -> spaql.Problem:
    found = problem(spoiled(step=never_truncated))
    return with_changes(found, make=spoiled(step=never_truncated))


FAULTY: dict[str, Callable[[], spaql.Problem]] = {
    "can be made": broken_make,
    "resets": lambda: problem(spoiled(reset=reset_without_info)),
    "steps": lambda: problem(spoiled(step=lambda self, action: Sound.step(self, action)[:4])),
    "observations are sound": lambda: problem(spoiled(seen=lambda self: np.zeros(3, np.float32))),
    "observations are of their type": lambda: problem(spoiled(seen=lambda self: self.state)),
    "observations are within bounds": lambda: problem(spoiled(seen=lambda self: np.float32(5 * self.state))),
    "observations are their own": lambda: problem(spoiled(seen=overwrites)),
    "extreme actions can be played": lambda: problem(spoiled(step=far_away)),
    "rewards are numbers": lambda: problem(answer(1, lambda env, reward: np.array([reward]))),
    "rewards are in their range": lambda: problem(reward_range=(-0.001, 0.0)),
    "ends are true or false": lambda: problem(answer(3, 0)),
    "the horizon truncates": long_episodes,
    "termination is of the plant": lambda: problem(spoiled(step=counted)),
    "seeds repeat the episode": lambda: problem(draws(np.random.random)),
    "copies are independent": lambda: problem(spoiled(step=shares)),
    "actions are left alone": lambda: problem(spoiled(step=writes)),
    "many are as one": many_of_another_kind,
    "standard observations use the cube": wide_bounds,
    "the reference can be reached": reference_out_of_reach,
    "the compiled plant is the written one": plant_with_a_memory,
}


def test_a_sound_environment_passes() -> None:
    report = spaql.check_problem(problem())
    assert report, str(report)


@pytest.mark.parametrize("check", PROBLEM_CHECKS, ids=lambda check: check.name)
def test_every_check_catches_the_fault_that_was_made_for_it(check: Any) -> None:
    """A sound environment passes all of them: see the test above."""
    assert check.promise.endswith(".")
    finding = check.run(ProblemCase(FAULTY[check.name]()))
    assert finding.outcome == "failed", finding
    assert finding.why


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_problem_passes(name: str) -> None:
    report = spaql.check_problem(name)
    assert report, str(report)
    assert len(report.findings) == len(PROBLEM_CHECKS)


def failing(self, action):
    raise ValueError("the valve is stuck")


@pytest.mark.parametrize(
    ("make", "name", "why"),
    [
        (
            spoiled(step=failing),
            "steps",
            r"test_check_problem.py, line \d+, in failing: ValueError: the valve",
        ),
        (spoiled(step=lambda self, action: Sound.step(self, action)[:4]), "steps", r"line \d+: .* 4 values"),
        (spoiled(reset=lambda self, **_: Sound.reset(self)[0]), "resets", r"Gymnasium's is \(observation, i"),
        (answer(1, math.nan), "rewards are in their range", "One is nan"),
        (answer(1, 1e307), "rewards are in their range", "not finite"),
        (spoiled(reset=reset_without_seed), "seeds repeat the episode", "differ"),
        (draws(random.random), "seeds repeat the episode", "self.np_random"),
        (spoiled(step=one_way), "extreme actions can be played", "too much"),
        (answer(0, np.float32([0.0, np.nan])), "observations are sound", "nan"),
    ],
)
def test_one_fault_is_one_finding(make: Callable[[], gymnasium.Env], name: str, why: str) -> None:
    report = spaql.check_problem(problem(make))
    assert [finding.name for finding in report.failed] == [name], str(report)
    assert re.search(why, report[name].why)
    assert len(report.findings) == len(PROBLEM_CHECKS)
    assert str(report).splitlines()[-3].startswith(f"failed   {name}")


def test_what_cannot_be_a_problem_is_said() -> None:
    class Text(gymnasium.Env):
        observation_space = spaces.Text(5)
        action_space = spaces.Discrete(2)

    report = spaql.check_problem(Text(), horizon=5)
    assert not report
    assert "must be a Box or Discrete" in report["can be made"].why
    assert "no limit" in spaql.check_problem(Sound())["can be made"].why


@pytest.mark.parametrize(("step", "horizon"), [(runs_away, 100), (swings, 200)])
def test_bounds_that_only_extremes_leave_are_found_before_training_finds_them(
    step: Callable[..., Any], horizon: int
) -> None:
    made = problem(spoiled(step=step), horizon=horizon)
    case = ProblemCase(made)
    assert max(np.abs(case.observations).max(), 0) < 1.2  # which random actions do not
    report = spaql.check_problem(made)
    assert [finding.name for finding in report.failed] == ["observations are within bounds"], str(report)
    assert "Widen the range in the observation space" in report["observations are within bounds"].why


@pytest.mark.filterwarnings("always::spaql.errors.SpaqlWarning")
def test_the_advice_on_bounds_does_not_lead_back_to_the_check(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "leaving_plant.py").write_text(LEAVING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    name = ["leaving_plant:test/Leaving-v0"]
    few = ["--steps", "300", "--seed", "1"]
    trained = CliRunner().invoke(main, ["train", *name, *few, "--quiet", "--out", "run"])
    assert trained.exit_code == 0
    assert "beyond its declared range" in trained.stderr + trained.output
    assert "spaql check" not in trained.stderr
    checked = CliRunner().invoke(main, ["check", *name])
    assert checked.exit_code == 1
    assert "Widen the range in the observation space" in checked.output


LEAVING = """
import gymnasium, numpy as np
class Leaving(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = 0.0
        return np.float32([self.x]), {}
    def step(self, action):
        self.x += 0.2 * float(action[0])
        return np.float32([self.x]), self.x, False, False, {}
gymnasium.register("test/Leaving-v0", entry_point=Leaving, max_episode_steps=50)
"""
