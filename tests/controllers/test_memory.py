"""Controllers with memory: what is declared, how they are played, their text and their files."""

import dataclasses
import json

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import spaql
from feature_controllers import ACTIONS, ALL, DONE, OBSERVATIONS, SEEN, random_controller, two_leaf_pi
from spaql import SettingError, archive
from spaql.controllers import (
    Angle,
    Controller,
    Difference,
    Error,
    FilteredDerivative,
    Integral,
    LastAction,
    LowPass,
    Observed,
    RecordingPolicy,
    SinceChange,
    text,
)
from spaql.controllers.file import controller_from, controller_to
from spaql.controllers.law_names import law_names
from spaql.errors import ArchiveError, BadEnvironmentError
from spaql.evaluation import robustness, stress
from spaql.simulate import play, record
from spaql.simulate.batches import fresh_states


@pytest.fixture(scope="module")
def problem() -> spaql.Problem:
    return dataclasses.replace(spaql.make_problem("Pendulum-v1"), horizon=30)


@pytest.fixture(scope="module")
def swing(problem: spaql.Problem) -> Controller:
    """A controller for the pendulum that sees no speed, and remembers its last torque."""
    features = (
        Angle("angle", "sin(angle)", "cos(angle)"),
        FilteredDerivative("angular speed", "angle", time_constant=0.02),
        LastAction("last torque", "torque"),
    )
    return Controller.of_laws(
        features,
        {"torque": {"angle": -0.5, "angular speed": -0.3, "last torque": 0.2}},
        observation_space=problem.states.space,
        action_space=problem.actions.space,
        observations=problem.states.names,
        actions=problem.actions.names,
        sample_time=0.05,
        rate_limit=40.0,
    )


def loop(controller: Controller, seed: int, steps: int) -> float:
    env = gymnasium.make("Pendulum-v1")
    state = None
    total = 0.0
    observation, _ = env.reset(seed=seed)
    for _ in range(steps):
        action, state = controller.predict(observation, state)
        observation, reward, *_ = env.step(action)
        total += float(reward)
    env.close()
    return total


def test_episodes_are_those_of_a_loop_that_passes_the_state_on(swing, problem):
    wanted = [loop(swing, seed, problem.horizon) for seed in (3, 4)]
    assert [one.total for one in record(swing, problem, (3, 4))] == wanted


def test_stable_baselines3_evaluates_it(swing, problem):
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    made = [gymnasium.make("Pendulum-v1", max_episode_steps=problem.horizon) for _ in range(2)]
    for env in made:
        env.reset(seed=3)
    returns, _ = evaluation.evaluate_policy(swing, made[0], 2, return_episode_rewards=True, warn=False)
    for wanted in returns:
        (observation, _), state, total = made[1].reset(), None, 0.0
        for _ in range(problem.horizon):
            action, state = swing.predict(observation, state)
            observation, reward, *_ = made[1].step(action)
            total += float(reward)
        assert total == pytest.approx(wanted, rel=1e-5)


def test_every_way_to_play_keeps_one_memory_for_each_episode(swing, problem):
    starts = np.array([[0.3, 0.0], [2.0, -1.0], [-1.0, 4.0]])
    together = [one.actions for one in play(swing, problem, starts)]
    alone = [next(play(swing, problem, start[np.newaxis])).actions for start in starts]
    assert np.array_equal(together, alone)
    result = spaql.evaluate(swing, problem, episodes=5, seed=2)
    begun = fresh_states(swing, problem, 5, 2)
    assert result.returns.tolist() == [one.total for one in play(swing, problem, begun)]


def test_stress_and_robustness_play_it(swing, problem):
    begun = stress(swing, problem, starts=np.array([[0.3, 0.0], [2.0, -1.0]])).starts
    assert len(begun) == 2
    rows = robustness(swing, problem, episodes=3, noise=(0.01,), disturbance=(0.1,), parameters=())
    assert [row.change for row in rows] == ["nominal", "noise 1 %", "actions 10 % off", "one step late"]
    assert len({row.mean for row in rows}) == 4


def test_a_record_is_shared_with_the_policy_that_plays(swing, problem):
    watched = RecordingPolicy(swing)
    spaql.evaluate(watched, problem, episodes=4, seed=1, deterministic=True)
    assert watched.visited.shape == (4 * problem.horizon, 3)


def test_predict_passes_the_state_on_and_resets_it():
    controller = random_controller(2)
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(4, 3, 4))
    state = None
    kept = []
    for batch in seen:
        actions, state = controller.predict(batch, state)
        kept.append(actions)
    again, _ = controller.predict(seen[0], state, episode_start=np.array([True, False, True]))
    assert np.array_equal(again[[0, 2]], kept[0][[0, 2]])
    assert not np.array_equal(again[1], kept[0][1])
    single, after = controller.predict(seen[0][1])
    assert np.array_equal(single, kept[0][1])
    assert after[0].shape == (1, controller.new_memory(1).shape[1])
    with pytest.raises(SettingError, match="The state has the shape"):
        controller.predict(seen[0], after)


def test_actions_without_memory_are_refused_after_the_first_step():
    controller = random_controller(2)
    assert controller.act(np.zeros((2, 4)), np.zeros(2, np.int64), None).shape == (2, 2)
    with pytest.raises(SettingError, match="has memory"):
        controller.act(np.zeros((2, 4)), np.array([0, 1]), None)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e31])
def test_what_is_no_reading_is_refused(bad):
    with pytest.raises(BadEnvironmentError, match="numbers up to 1e"):
        random_controller(2).predict([0.0, bad, 0.0, 0.0])


def test_a_leaf_is_left_only_when_its_condition_is_missed_by_the_margin():
    controller = two_leaf_pi(hysteresis=(0.1, 0.0))
    state = None
    leaves = []
    for error in (0.3, 0.45, 0.49999, 0.5, 0.45, 0.31, 0.29, 0.35):
        _, state = controller.predict([0.0, error], state)
        leaves.append(int(state[0][0, 1]))
    assert leaves == [1, 1, 1, 2, 2, 2, 1, 1]


def test_an_integral_waits_only_while_it_would_push_further():
    controller = two_leaf_pi(rate_limit=())
    place = controller.new_memory(1).shape[1] - 1
    state = None
    for _ in range(100):
        _, state = controller.predict([0.0, 1.0], state)
    held = state[0][0, place]
    assert 0 < held < 20.0  # the pump is at its limit long before the clamp
    assert controller.predict([2.0, 0.0], state)[1][0][0, place] == held - 1.0


def test_the_text_has_formulas_laws_and_limits():
    lines = text(two_leaf_pi(hysteresis=(0.1, 0.0), dead_band=0.05), digits=3).splitlines()
    assert lines == [
        "error [m] = set-point - level",
        "integral [m s] = integral of error within -20 and 20, from 0: += 0.5 s * error; waits while it "
        "would push a limited action further",
        "",
        "if error [m] < 0.4:",
        "    pump [V] = 3.1 * error [m] + 0.7 * integral [m s]",
        "else:",
        "    pump [V] = 0.5 + 6.3 * error [m] + 0.35 * integral [m s]",
        "",
        "pump [V]: within 0 and 10, changed by at most 3 V/s, not changed by less than 0.05; from 0 at a "
        "reset",
        "Hysteresis: a leaf is left when error [m] misses its condition by 0.1 or more.",
        "A sample every 0.5 s.",
    ]
    for line in text(random_controller(4)).splitlines()[: len(ALL)]:
        assert "=" in line


def one_law(features, gains, **more) -> Controller:
    return Controller.of_laws(
        features,
        {"pump": gains},
        observation_space=OBSERVATIONS,
        action_space=Box(-1.0, 1.0, (1,), np.float64),
        observations=SEEN,
        actions=("pump [V]",),
        sample_time=4.0,
        **more,
    )


E = Error("e", "set-point", "level")
SUM, D, DD = Integral("I", "e", limit=9.0), Difference("de", "e"), Difference("dde", "de")


@pytest.mark.parametrize(
    ("features", "gains", "more", "name"),
    [
        ([E], {"e": 2.0}, {}, "a P controller, Kp = 2"),
        ([E, SUM], {"e": 1.66, "I": 1.66 / 7.5}, {}, "a PI controller, Kp = 1.66, Ti = 7.5 s"),
        ([E, SUM], {"I": 0.5}, {}, "an I controller, Ki = 0.5 per second"),
        ([E, D], {"e": 2.0, "de": 0.5}, {}, "a PD controller, Kp = 2, Td = 1 s"),
        (
            [E, SUM, FilteredDerivative("slope", "e", 3.0)],
            {"e": 2.0, "I": 0.1, "slope": 6.0},
            {},
            "a PID controller, Kp = 2, Ti = 20 s, Td = 3 s, filter 3 s",
        ),
        (
            [E, D],
            {"e": 0.885, "de": 1.66},
            {"form": "velocity"},
            "a PI controller, Kp = 1.66, Ti = 7.5 s (velocity form)",
        ),
        (
            [E, D, DD],
            {"e": 1.0, "de": 2.0, "dde": 3.0},
            {"form": "velocity"},
            "a PID controller, Kp = 2, Ti = 8 s, Td = 6 s (velocity form)",
        ),
        (
            [E, LastAction("before", "pump")],
            {"e": 2.0, "before": -0.25},
            {"offsets": {"pump": 0.1}},
            "a P controller, Kp = 2, plus 0.1 - 0.25 * before",
        ),
    ],
)
def test_one_law_has_an_engineers_name(features, gains, more, name):
    controller = one_law(features, gains, **more)
    assert law_names(controller) == (name,)
    assert str(controller).endswith(f"\n# {name}")


def test_a_law_of_two_errors_or_none_has_no_name():
    assert not law_names(one_law([Observed("level")], {"level": 2.0}))
    other = Error("f", "cosine", "sine")
    assert not law_names(one_law([E, other], {"e": 2.0, "f": 1.0}))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: one_law([E], {"f": 1.0}), "no feature 'f'"),
        (lambda: one_law([D, E], {"e": 1.0}), "uses 'e', which is no observation or earlier feature"),
        (lambda: one_law([Difference("level", "level")], {}), "the name of an observation"),
        (lambda: one_law([type("Own", (Difference,), {})("own", "level")], {}), "of the kind Own"),
        (lambda: one_law([E, E], {"e": 1.0}), "more than once"),
        (lambda: one_law([E], {"e": 1.0}, form="speed"), "form is 'speed'"),
        (lambda: one_law([E], {"e": 1.0}, rate_limit=-1.0), "rate_limit is -1.0"),
        (lambda: one_law([E], {"e": 1.0}, dead_band=(0.1, 0.1)), "dead_band is"),
        (lambda: one_law([E], {"e": 1.0}, start=2.0), "start is"),
        (lambda: Integral("I", "e", limit=-1.0), "limit of I is -1.0"),
        (lambda: LowPass("slow", "e", time_constant=-1.0), "time_constant of slow"),
        (lambda: Error("error [m]", "a", "b"), "has a unit in its name"),
        (lambda: dataclasses.replace(two_leaf_pi(), features=ALL[:3], hysteresis=()), "gains of the shape"),
        (
            lambda: dataclasses.replace(one_law([E], {}), action_space=Box(0.0, 1.0, (2,))),
            "there are 2 to give",
        ),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(SettingError, match=message):
        make()


def same(one: Controller, other: Controller) -> bool:
    memories = [controller.new_memory(50) for controller in (one, other)]
    for batch in np.random.default_rng(1).normal(size=(5, 50, len(one.observations))):
        actions = [c.sample(batch, m).action for c, m in zip((one, other), memories, strict=True)]
        if not np.array_equal(*actions):
            return False
    return np.array_equal(*memories)


@pytest.mark.parametrize("seed", range(4))
def test_a_description_is_read_as_it_was_written(seed):
    controller = random_controller(seed)
    data, arrays = controller_to(controller)
    document = archive.loads(archive.dumps(data, arrays))
    twin = controller_from(document.data, document.arrays)
    assert same(controller, twin)
    assert str(twin) == str(controller)
    assert archive.dumps(*controller_to(twin)) == archive.dumps(data, arrays)


def test_it_is_saved_with_its_problem_and_loaded(swing, problem, tmp_path):
    spaql.Design(swing, problem, {"by": "hand"}).save(tmp_path / "a.spaql")
    twin = spaql.load(tmp_path / "a.spaql")
    assert isinstance(twin.policy, Controller)
    assert same(swing, twin.policy)
    action, state = twin.predict([1.0, 0.0, 0.0])
    assert np.array_equal(twin.predict([0.8, 0.6, 0.0], state)[0], swing.predict([0.8, 0.6, 0.0], state)[0])
    assert action.dtype == np.float32
    assert (
        spaql.evaluate(tmp_path / "a.spaql", episodes=2).mean
        == spaql.evaluate(swing, problem, episodes=2).mean
    )


HOSTILE = [
    ("memory.sample_time", 0.0),
    ("memory.sample_time", "1"),
    ("memory.form", "speed"),
    ("features", []),
    ("features", [{"kind": "error"}] * 2000),
    ("features.0.kind", "exec"),
    ("features.0.name", 5),
    ("features.0.setpoint", "nothing"),
    ("features.0.more", 1),
    ("features.2.limit", -1.0),
    ("features.2.limit", "inf"),
    ("features.6.samples", 10**18),
    ("features.6.samples", 0.5),
    ("features.8.time_constant", None),
    ("observations", []),
    ("actions", ["pump [V]"]),
    ("memory.rate_limit", []),
    ("memory.rate_limit", [1.0]),
    ("memory.rate_limit", ["1", 1.0]),
    ("memory.dead_band", [-1.0, 0.0]),
    ("memory.start", [9.0, 0.0]),
    ("memory.hysteresis", [0.1]),
    ("action_space", {"kind": "discrete", "n": 2, "start": 0}),
    ("observation_space.shape", [10**18]),
    ("memory", None),
]


@pytest.mark.parametrize(("path", "value"), HOSTILE)
def test_hostile_files_are_refused(path, value):
    data, arrays = controller_to(random_controller(0))
    data = json.loads(json.dumps(data))
    *way, last = path.split(".")
    inner = data
    for part in way:
        inner = inner[int(part)] if part.isdigit() else inner[part]
    inner[last] = value
    with pytest.raises(ArchiveError):
        controller_from(data, arrays)


def test_a_tree_that_grows_without_end_when_it_is_written_out_is_refused():
    n = 60
    controller = one_law([Observed("level")], {"level": 1.0})
    nodes = {
        "feature": np.array([0] * n + [-1]),
        "threshold": np.arange(n + 1.0),
        "left": np.array([*range(1, n + 1), -1]),
        "right": np.array([*range(1, n + 1), -1]),
        "leaf": np.array([-1] * n + [0]),
    }
    with pytest.raises(SettingError, match="nodes"):
        dataclasses.replace(controller, **nodes)


def test_names_and_units_of_the_actions_and_observations_are_kept():
    controller = random_controller(0)
    assert (controller.observations, controller.actions) == (SEEN, DONE)
    assert controller.action_space == ACTIONS
    assert controller.inputs[:6] == (
        "error [m]", "level [m]", "integral [m s]", "change [m]", "second change [m]", "slope [m/s]",
    )  # fmt: skip


def test_the_time_since_a_discrete_action_changed_is_counted() -> None:
    """The action follows the sign of the level; before the first sample the time is its limit."""
    controller = Controller.of_laws(
        [Observed("level"), SinceChange("since", "action", limit=1.6)],
        {"on": {"level": 1.0}},
        observation_space=Box(-1.0, 1.0, (1,)),
        action_space=Discrete(2, start=3),
        observations=("level",),
        actions=("off", "on"),
        sample_time=0.5,
    )
    levels = [-1, -1, 1, 1, 1, 1, 1, -1, 1]  # off is the last action at a reset
    state = None
    times = []
    for level in levels:
        times.append(float(controller.inputs_of(np.array([level]), state)[1]))
        action, state = controller.predict([level], state)
        assert action == (4 if level > 0 else 3)
    assert times == [1.6, 1.6, 1.6, 0.5, 1.0, 1.5, 1.6, 1.6, 0.5]
    with pytest.raises(spaql.SettingError, match="discrete action"):
        Controller.of_laws(
            [SinceChange("since", "u0", 1.0)],
            {},
            observation_space=Box(-1.0, 1.0, (1,)),
            action_space=Box(-1.0, 1.0, (1,)),
            sample_time=0.5,
        )
