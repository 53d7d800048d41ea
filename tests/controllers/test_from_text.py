"""Text is read back as the controller that it is of, and errors say where and what was expected."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given
from hypothesis import strategies as st
from tests.feature_controllers import random_controller, two_leaf_pi
from tests.oblique_trees import oblique_trees, points
from tests.random_trees import random_tree

import spaql
from spaql import zoo
from spaql.controllers import Controller, FilteredDerivative, Integral, Laws, rules, text
from spaql.controllers.mirrored import folded


def assert_same(controller: Controller, other: Controller, observations: np.ndarray) -> None:
    """Both take the same actions, to the last bit: in one episode each if they remember."""
    if not controller.remembers:
        assert np.array_equal(controller.act(observations), other.act(observations))
        return
    memories = [one.new_memory(1) for one in (controller, other)]
    for observation in observations[np.abs(observations).max(axis=1) < 1e30]:
        decisions = [
            one.sample(observation[np.newaxis], memory)
            for one, memory in zip((controller, other), memories, strict=True)
        ]
        assert np.array_equal(decisions[0].action, decisions[1].action)
        assert controller.discrete or np.array_equal(decisions[0].wish, decisions[1].wish)


def assert_read_back(controller: Controller, observations: np.ndarray) -> None:
    written = text(controller)
    read = rules(written, controller)
    assert text(read) == written
    assert_same(controller, read, observations)
    assert text(rules(text(controller, numbered=True), controller)) == written
    rounded = text(controller, digits=3)
    rules(rounded, controller)  # a controller, too


@given(oblique_trees())
def test_rules_on_sums_and_scores_are_read_back(tree: Controller) -> None:
    # A sum of one input with the weight 1 is that input, and equal sums are one.
    assert_same(tree, rules(text(tree), tree), points())
    again = rules(text(tree), tree)
    assert_read_back(again, points())


@given(
    st.integers(0, 2**32),
    st.integers(1, 12),
    st.sampled_from(["choices", "constants", "laws", "switching laws"]),
    st.integers(0, 2),
)
def test_random_trees_are_read_back(seed: int, leaves: int, kind: str, sums: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 3, leaves, kind, sums=sums)
    tree = replace(tree, threshold=np.where(np.abs(tree.threshold) < 1e-300, 0.0, tree.threshold))
    assert_same(tree, rules(text(tree), tree), rng.normal(size=(100, 3)) * 100)


@given(st.integers(0, 2**32), st.sampled_from(["position", "velocity"]))
def test_controllers_with_every_feature_and_limit_are_read_back(seed: int, form: str) -> None:
    controller = random_controller(seed, form=form)
    assert_read_back(controller, np.random.default_rng(seed).uniform(-2, 2, (30, 4)))


@pytest.mark.parametrize("name", zoo.names())
def test_every_controller_of_the_zoo_is_read_back(name: str) -> None:
    design = zoo.load(name)
    controller = design.policy
    low, high = (
        np.clip(end, -10, 10) for end in (controller.observation_space.low, controller.observation_space.high)
    )
    assert_read_back(controller, np.random.default_rng(0).uniform(low, high, (200, len(low))))
    assert (folded(controller) is None) == (folded(rules(text(controller), design.problem)) is None)


def test_a_partition_is_read_back() -> None:
    agent = spaql.SPAQL("pendulum", seed=0).learn(iterations=30)
    tree = spaql.controller_of(agent)
    assert_read_back(tree, np.random.default_rng(0).uniform([-1, -1, -8], [1, 1, 8], (500, 3)))


def test_a_discrete_controller_with_memory_is_read_back() -> None:
    from spaql.controllers import LastAction, Observed, SinceChange

    controller = Controller(
        features=(Observed("level"), LastAction("before", "action", 2), SinceChange("held", "action", 7.5)),
        feature=[0, -1, 2, -1, -1],
        threshold=[0.1, 0, 3.0, 0, 0],
        left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1],
        leaf=[-1, 0, -1, 1, 2],
        laws=Laws([[[0, 0, 0]] * 3, [[0, 0, 0], [1 / 3, 0, 0], [0, -1, 0]], [[0, 0, 0]] * 3],
                  [[0, -np.inf, -np.inf], [0.1, 0.2, 0.3], [-np.inf, 0, -np.inf]]),
        observation_space=Box(-1.0, 1.0, (1,), np.float64),
        action_space=Discrete(3, start=1),
        observations=("level",),
        actions=("off", "held", "on, if cold"),
        sample_time=0.1,
        start=2,
        hysteresis=(0.05, 0, 0),
    )  # fmt: skip
    assert_read_back(controller, np.random.default_rng(0).uniform(-1, 1, (300, 1)))


HOSTILE = ("a", "s", "x if", "sin(angle)", "x - y", "min", "a sample before [m/s]", "2 # 3", "of", "or [1]")


@given(st.permutations(HOSTILE), st.data())
def test_names_may_hold_signs_words_and_units(names: list[str], data: st.DataObject) -> None:
    tree = data.draw(oblique_trees(kinds=("laws", "choices", "switching")))
    n = len(tree.actions)
    named = replace(tree, observations=tuple(names[:3]), actions=tuple(names[3 : 3 + n]))
    assert_same(named, rules(text(named), named), points())


PENDULUM = {
    "observations": ["angle [rad]", "speed [rad/s]"],
    "actions": {"torque [N m]": (-2, 2)},
}


def test_a_controller_is_written_by_hand() -> None:
    controller = rules(
        """
        # swing up, then balance
        if angle > 1 or not (angle >= -1 and 2 * speed <= 3 - speed): torque = 2
        elif speed < 0:
            torque [N m] = -(10 * angle + speed) / 4 - 0.5
        else: torque = clip(1 - 3 * angle, -2, 2)
        """,
        **PENDULUM,
    )

    def by_hand(angle: float, speed: float) -> float:
        if angle > 1 or not (angle >= -1 and speed <= 1):
            return 2.0
        return np.clip(-(10 * angle + speed) / 4 - 0.5 if speed < 0 else 1 - 3 * angle, -2, 2)

    grid = [
        (angle, speed) for angle in (-1.5, -1, -0.1, 0, 0.2, 1, 1.5) for speed in (-2, -0.5, 0, 0.5, 1, 1.5)
    ]
    actions = controller.act(np.array(grid))
    assert actions[:, 0].tolist() == pytest.approx([by_hand(*point) for point in grid], abs=1e-12)


@pytest.mark.parametrize(("sign", "at_zero"), [(">", 1), (">=", 0), ("<", 1), ("<=", 0)])
def test_a_choice_is_what_is_written_where_both_scores_are_equal(sign: str, at_zero: int) -> None:
    tree = rules(f"left if x {sign} 0 else right", observations=["x"], actions=["left", "right"])
    assert tree.act([[0.0]]).tolist() == [at_zero]
    tree = rules(f"right if x {sign} 0 else left", observations=["x"], actions=["left", "right"])
    assert tree.act([[0.0]]).tolist() == [1 - at_zero]


def test_features_are_written_by_hand_without_what_follows() -> None:
    pid = rules(
        """
        error = set-point - level
        sum = integral of error within -20 and 20
        slope = derivative of error filtered with 0.7 s
        pump = 3 * (error + sum / 5 + 0.1 * slope)
        pump: within 0 and 10, changed by at most 3 V/s
        A sample every 0.5 s.
        """,
        two_leaf_pi(),
    )
    assert [type(feature) for feature in pid.features[1:]] == [Integral, FilteredDerivative]
    assert pid.inputs == ("error [m]", "sum [m s]", "slope [m/s]")
    assert pid.laws.gain.tolist() == [[[3.0, 0.6000000000000001, 0.30000000000000004]]]
    assert (pid.rate_limit, pid.sample_time) == ((3.0,), 0.5)


RULES = "if angle < 0:\n    torque = 1\nelse:\n    torque = {}\n"
ERRORS = {
    "if angel < 0:\n    torque = 1\nelse:\n    torque = 2": "Line 1: .* 'angel': did you mean angle?",
    RULES.format("2 * sped"): "Line 4: there is no 'sped': did you mean speed?",
    RULES.format("speed * angle"): "Line 4: expected a sum of inputs times numbers",
    RULES.format("3"): "The action in line 4 is .*3.*torque .* from -2 to 2",
    RULES.format("clip(speed, -1, 1)"): "Line 4: expected -2 as a limit of the action",
    RULES.format("1 +"): "in line 4 '1 \\+' cannot be read",
    RULES.format("1") + "A sample every s.": "Line 5: expected a line such as 'A sample every 0.5 s.'",
    RULES.format("1") + "torque: within -1 and 1": "Line 5: expected -2 as an end of the range",
    "if angle < 0:\n    torque = 1": "Line 2: expected 'elif' or 'else:', below the 'if' of line 1",
    "if angle < 0:\ntorque = 1": "Line 2: expected a rule or an action that begins with more spaces",
    "if angle < 0\n    torque = 1": "Line 1: expected a condition and ':'",
    "else: torque = 1": "Line 1: expected an 'if' before it",
    "if angle:\n    torque = 1\nelse:\n    torque = 2": "Line 1: expected a comparison",
    "if angle == 0:\n    torque = 1\nelse:\n    torque = 2": "Line 1: expected comparisons of inputs by <",
    "angle": "Line 1: expected 'torque \\[N m\\] = ...'",
    "": "Line 1: expected 'torque \\[N m\\] = ...'",
    "torque = 1\ntorque = 2": "Line 2: expected a line such as",
    "total = integral of angel within -1 and 1\ntorque = total": "Line 1: .*'angel', which is no observation",
    "total = integrl of angle within -1 and 1\ntorque = total": "Line 1: .*did you mean integral of OF",
    "total = integral of angle within -1 and 1\ntorque = total": "'A sample every 0.5 s.'",
    "total = low-pass of angle with 1 s: += 0.4 * (angle - total), from the first value of angle\n"
    "torque = total\nA sample every 1 s.": "Line 1: '0.4' is '0.5' here",
    "mirror so that angle >= 0:\n    torque = 1": "Line 1: expected 'mirror so that",
}  # fmt: skip


@pytest.mark.parametrize("wrong", ERRORS)
def test_errors_name_the_line_and_what_was_expected(wrong: str) -> None:
    with pytest.raises(spaql.SettingError, match=ERRORS[wrong]):
        rules(wrong, **PENDULUM)


def test_a_problem_or_names_are_given() -> None:
    for arguments in ({}, {"like": "Pendulum-v1", **PENDULUM}):
        with pytest.raises(spaql.SettingError, match="give one of the two"):
            rules("torque = 1", **arguments)
