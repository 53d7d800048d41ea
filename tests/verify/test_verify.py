"""Statements about whole closed loops."""

import dataclasses
import itertools

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

import spaql
from spaql.controllers import Controller, Error, Integral, Laws, Square
from spaql.plugins.certificates.certificate import save_certificate
from spaql.plugins.certificates.check import check_certificate
from spaql.problems.classic import find_dynamics
from spaql.verify import Statement
from spaql.verify.replay import played
from verify_programs import controller_for, one_cut


def tree_for(env, laws, **rules):
    return controller_for(find_dynamics(env) if isinstance(env, str) else env, laws, **rules)


def with_speed(first, second):
    """Return MountainCar's tree of two actions, by the sign of the speed."""
    return tree_for("MountainCar-v0", [first, second], **one_cut(0.0, feature=1))


def tank(*, step=None, name="verified/Tank-v0", **named):
    def fill(state, action):
        level = state[0] + 0.1 * (action[0] - 0.5 * state[0])
        return (min(max(level, 0.0), 2.0),), 0.0, False

    settings = {"observations": {"level [m]": (0, 2)}, "reference": (1.0,), "horizon": 40} | named
    return spaql.Dynamics(
        id=name,
        start=lambda rng: (rng.uniform(0.0, 2.0),),
        step=step or fill,
        **{"actions": {"inflow": (0, 1)}} | settings,
    )


def constant(plant, value):
    return tree_for(plant, [[value]])


def proportional(plant, gain, setpoint, offset):
    return tree_for(plant, Laws(np.array([[[-gain]]]), np.array([[gain * setpoint + offset]])))


def states(env, tree, start, steps):
    """Return the states of an episode, and when it has terminated."""
    return list(itertools.islice(played(find_dynamics(env), tree, start), steps + 1))


def test_a_car_that_swings_up_is_proven():
    tree = with_speed(0, 2)
    verdict = spaql.verify(tree, "MountainCar-v0", levels=8)
    assert verdict.proven > 0.99
    assert verdict.refuted == 0.0
    assert verdict.counterexample is None
    assert verdict.proven + verdict.undecided == pytest.approx(1.0)
    # Every proven cell is kept by episodes from anywhere in it.
    rng = np.random.default_rng(0)
    size = (verdict.high - verdict.low) / np.array(verdict.times.shape)
    for cell in rng.integers(0, verdict.times.shape, (60, 2)):
        steps = verdict.times[tuple(cell)]
        if steps >= 0:
            start = verdict.low + size * (cell + rng.random(2))
            assert any(ended for _, ended in states("MountainCar-v0", tree, start, steps))


def test_a_counterexample_is_what_the_environment_does():
    tree = with_speed(1, 1)
    starts = {"position": (-1.2, 0.6), "speed": (-0.07, 0.07)}
    asked = Statement(starts=starts, termination="goal", within=150)
    verdict = spaql.verify(tree, "MountainCar-v0", asked, levels=6)
    assert verdict.refuted > 0.3
    found = verdict.counterexample
    env = gymnasium.make("MountainCar-v0", max_episode_steps=2_000)
    env.reset(seed=0)
    env.unwrapped.state = np.array(found.start)
    seen = np.array(found.start, np.float32)
    for state, _ in states("MountainCar-v0", tree, found.start, found.step)[1:]:
        seen, _, terminated, _, _ = env.step(int(tree.act(seen[None])[0]))
        assert not terminated
        assert tuple(np.float64(env.unwrapped.state)) == state


def test_a_tank_comes_to_its_level_and_stays():
    plant = tank()
    verdict = spaql.verify(constant(plant, 0.5), plant)
    assert (verdict.proven, verdict.refuted, verdict.undecided) == (1.0, 0.0, 0.0)
    assert verdict.names == ("level [m]",)
    assert "stays there for ever" in verdict.text
    wrong = spaql.verify(constant(plant, 0.9), plant)
    assert wrong.proven == 0.0
    assert wrong.refuted == 1.0
    assert wrong.counterexample.why == "level [m] is not in the target after 200 steps"


def test_disturbances_make_a_statement_harder():
    plant = tank(name="verified/Noisy-v0")
    tree = proportional(plant, 2.0, 1.0, 0.5)
    target = {"level [m]": (0.9, 1.1)}
    asked = Statement(starts={"level [m]": (0.0, 2.0)}, target=target, stays=True, within=200)
    assert spaql.verify(tree, plant, asked).proven == 1.0
    assert spaql.verify(tree, plant, asked, noise=0.02, push=0.005).proven == 1.0
    assert "0.02" in spaql.verify(tree, plant, asked, noise=0.02).text
    assert spaql.verify(tree, plant, asked, push=0.2).proven == 0.0
    late = spaql.verify(
        tree,
        plant,
        Statement(**(vars(asked) | {"starts": {"level [m]": (0, 2), "waiting inflow": (0, 1)}})),
        delayed=True,
        levels=7,
    )
    assert late.proven > 0.95


def test_a_constant_that_is_not_known_is_a_number_of_the_state():
    def fill(state, action):
        level, area = state
        return (min(max(level + 0.1 / area * (action[0] - 0.5 * level), 0.0), 2.0), area), 0.0, False

    plant = spaql.Dynamics(
        id="verified/Area-v0",
        start=lambda rng: (rng.uniform(0.0, 2.0), rng.uniform(0.8, 1.2)),
        step=fill,
        observe=lambda state: (state[0],),
        observations={"level [m]": (0, 2)},
        actions={"inflow": (0, 1)},
        horizon=100,
    )
    starts = {"level [m]": (0.0, 2.0), "state 1": (0.8, 1.2)}
    asked = Statement(starts=starts, target={"level [m]": (0.9, 1.1)}, stays=True, within=300)
    verdict = spaql.verify(constant(plant, 0.5), plant, asked, levels=6)
    assert verdict.proven > 0.95
    assert verdict.names == ("level [m]", "state 1")


def pole_without_position():
    return tree_for(
        "CartPole-v1",
        [0, 1],
        feature=[2, 3, -1, -1, 3, -1, -1],
        threshold=[0.0, 0.4, 0, 0, -0.4, 0, 0],
        left=[1, 2, -1, -1, 5, -1, -1],
        right=[4, 3, -1, -1, 6, -1, -1],
        leaf=[-1, -1, 0, 1, -1, 0, 1],
    )


def assert_certified(verdict, folder):
    save_certificate(verdict, folder / "pole.proof")
    check = check_certificate(folder / "pole.proof")
    assert check.data["confirmed"] == 1.0
    assert check.data["statement"].endswith(", for ever")


def test_a_pole_without_its_position_never_falls(tmp_path):
    verdict = spaql.verify(pole_without_position(), "CartPole-v1", seconds=20)
    assert verdict.left_out == ("cart position [m]", "cart speed [m/s]")
    assert verdict.proven == 1.0
    assert "never leaves" in verdict.text
    assert_certified(verdict, tmp_path)


@pytest.mark.long
def test_a_pole_without_its_position_does_not_fall_in_some_steps(tmp_path):
    tree = pole_without_position()
    asked = dataclasses.replace(spaql.verify(tree, "CartPole-v1", seconds=20).statement, within=500)
    verdict = spaql.verify(tree, "CartPole-v1", asked, seconds=20)
    assert verdict.proven == 1.0
    assert "does not leave" in verdict.text
    assert_certified(verdict, tmp_path)


def test_a_start_outside_of_what_is_allowed_is_not_proven():
    plant = tank()
    tree = proportional(plant, 2.0, 1.0, 0.5)
    wide = {"level [m]": (0.0, 2.0)}
    allowed = {"level [m]": (0.471, 2.5)}
    target = {"level [m]": (0.46, 1.1)}
    for stays, termination in ((False, "failure"), (True, "failure")):
        asked = Statement(
            starts=wide, target=target, allowed=allowed, within=100, stays=stays, termination=termination
        )
        verdict = spaql.verify(tree, plant, asked, levels=6)
        assert verdict.proven > 0.5
        proven = np.flatnonzero(verdict.times >= 0)
        assert proven.min() * 2.0 / len(verdict.times) >= 0.471
    # A sliver of the starts that samples hardly find.
    asked = Statement(starts={"level [m]": (0.4709999, 1.5)}, allowed=allowed, forward=True)
    verdict = spaql.verify(tree, plant, asked)
    assert verdict.proven == 0.0
    assert verdict.counterexample.step == 0


def test_a_pole_that_falls_is_refuted():
    tree = tree_for("CartPole-v1", [1])
    verdict = spaql.verify(tree, "CartPole-v1", seconds=5)
    assert verdict.proven == 0.0
    assert verdict.refuted == 1.0
    assert verdict.left_out == ("cart position [m]", "cart speed [m/s]")
    assert verdict.counterexample.step < 50


def test_states_that_are_never_left():
    def wander(state, action):
        return (1.2 * state[0] + 0.3 * action[0],), 0.0, abs(state[0]) > 1.0

    ranges = {"observations": {"x": (-1, 1)}, "actions": {"u": (-1, 1)}}
    plant = tank(step=wander, name="verified/Unstable-v0", reference=None, **ranges)
    tree = tree_for(plant, [[1.0], [-1.0]], **one_cut(0.0))
    verdict = spaql.verify(tree, plant)
    assert verdict.statement.text == "it never terminates and it never leaves x -1 to 1"
    assert verdict.proven == pytest.approx(1.0, abs=1e-3)
    wrong = spaql.verify(constant(plant, 0.0), plant)
    assert wrong.refuted > 0.9


def test_states_that_are_not_left_in_some_steps():
    """x grows to 1.02 x + 0.01 u in a step, and u is 0: it is within 1 for 20 steps from 1.02 ** -20."""

    def grow(state, action):
        x = 1.02 * state[0] + 0.01 * action[0]
        return (x,), 0.0, abs(x) > 1.0

    plant = spaql.Dynamics(
        id="verified/Growth-v0",
        start=lambda rng: (rng.uniform(-1.0, 1.0),),
        step=grow,
        horizon=50,
        observations={"x": (-1, 1)},
        actions={"u": (-1, 1)},
    )
    tree = constant(plant, 0.0)
    starts = {"x": (-0.9, 0.9)}
    whole = {"x": (-1.0, 1.0)}
    share = 1.02**-20 / 0.9
    for asked in (
        Statement(starts=starts, within=20),
        Statement(starts=starts, within=20, allowed=whole, termination="ignored", forward=True),
    ):
        found = spaql.verify(tree, plant, asked, levels=9)
        assert share - 0.01 < found.proven <= share
        assert found.refuted > 0.98 - share
        assert found.counterexample is not None
        assert found.counterexample.step <= 20
        assert (
            spaql.verify(tree, plant, dataclasses.replace(asked, within=21), levels=9).proven < found.proven
        )
    assert asked.text == "it does not leave x -1 to 1 in 20 steps"
    assert Statement(starts=starts, within=20).text == "it does not terminate in 20 steps"
    assert spaql.verify(tree, plant, Statement(starts=starts), levels=9, seconds=5).proven == 0.0


def test_refusals():
    problem = spaql.make_problem("Pendulum-v1", compiled=False)
    tree = tree_for("Pendulum-v1", [[0.0]])
    with pytest.raises(spaql.SettingError, match="no equations"):
        spaql.verify(spaql.Design(tree, problem))
    plant = tank(name="verified/Refusing-v0")
    with pytest.raises(spaql.SettingError, match="no state variable 'height'"):
        spaql.verify(
            constant(plant, 0.5), plant, Statement(starts={"height": (0, 1)}, allowed={"height": (0, 1)})
        )
    with pytest.raises(spaql.SettingError, match="the lower end must come first"):
        spaql.verify(constant(plant, 0.5), plant, Statement(starts={"level [m]": (1, 0)}))
    with pytest.raises(spaql.SettingError, match="alone has no plant"):
        spaql.verify(constant(plant, 0.5))
    with pytest.raises(spaql.SettingError, match="Give the steps"):
        Statement(starts={}, target={"level [m]": (0, 1)})
    with_memory = Controller.of_laws(
        [Error("error", "target", "x"), Integral("integral", "error", limit=5.0)],
        {"u": {"error": 2.0, "integral": 0.5}},
        observation_space=Box(-1.0, 1.0, (2,)),
        action_space=Box(-1.0, 1.0, (1,)),
        observations=("x", "target"),
        actions=("u",),
        sample_time=1.0,
    )
    with pytest.raises(spaql.SettingError, match="has memory, and a proof does not cover that"):
        spaql.verify(with_memory, "Pendulum-v1")
    error = Error("error", "target", "x")
    with_features = dataclasses.replace(
        with_memory, features=(error, Square("square", "error")), sample_time=None
    )
    with pytest.raises(spaql.SettingError, match="has features, and a proof does not cover that"):
        spaql.verify(with_features, "Pendulum-v1")


def test_the_best_answer_when_the_time_is_up():
    verdict = spaql.verify(with_speed(0, 2), "MountainCar-v0", seconds=0.05)
    assert not verdict.finished
    assert 0.0 <= verdict.proven <= 1.0


def test_from_a_box_of_starts_to_a_goal_that_is_far_away():
    """The goal is passed at the edge: some of the starts miss it, and those must not be proven."""

    def fly(state, action):
        x, y = state
        x = x + 0.1
        y = y + 0.02 * action[0] - 0.1 * y * y
        return (x, y), 0.0, x > 4.0 and x < 4.3 and y > 0.1

    plant = spaql.Dynamics(
        id="verified/Far-v0",
        start=lambda rng: (0.0, 0.0),
        step=fly,
        observations={"x": (-10, 10), "y": (-10, 10)},
        actions={"u": (-1, 1)},
        horizon=50,
    )
    tree = tree_for(plant, [[-0.2], [0.05]], **one_cut(0.3, feature=1))
    starts = {"x": (0.0, 0.05), "y": (0.1, 0.6)}
    asked = Statement(starts=starts, termination="goal", within=45, forward=True)
    verdict = spaql.verify(tree, plant, asked, levels=7)
    assert 0.1 < verdict.proven < 0.95
    assert verdict.refuted > 0.02
    assert verdict.undecided < 0.1
    low = verdict.low
    size = (verdict.high - verdict.low) / 128
    rng = np.random.default_rng(0)
    for cell in rng.permutation(np.argwhere(verdict.status == 0))[:150]:
        start = low + (cell + rng.uniform(size=2)) * size
        assert any(ended for _, ended in itertools.islice(played(plant, tree, start), 46))
    with pytest.raises(spaql.SettingError, match="let the plant terminate in the target"):
        Statement(starts=starts, target={"x": (4, 5)}, within=9, forward=True)


def test_a_late_action_of_a_list_is_proven_and_played():
    plant = find_dynamics("MountainCar-v0")
    verdict = spaql.verify(with_speed(0, 2), plant, delayed=True, levels=6, seconds=8)
    assert verdict.names == ("position", "speed", "waiting action")
    assert "every action a step late" in verdict.text
    assert verdict.proven > 0.1
    low = verdict.low
    size = (verdict.high - verdict.low) / np.array(verdict.status.shape)
    rng = np.random.default_rng(0)
    for cell in rng.permutation(np.argwhere(verdict.status == 0))[:100]:
        start = low + (cell + rng.uniform(size=3)) * size
        episode = itertools.islice(played(plant, with_speed(0, 2), start, delayed=True), 1_001)
        assert any(ended for _, ended in episode)
