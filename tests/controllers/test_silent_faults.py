"""What a review of controllers found: claims that outlive a change, and input that was taken in silence."""

import dataclasses

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import spaql
from feature_controllers import two_leaf_pi
from spaql import SettingError
from spaql.algorithms.treesearch.rule_trees import from_rules, to_rules
from spaql.algorithms.treesearch.trees import one_leaf
from spaql.controllers import (
    Controller,
    Difference,
    Error,
    FilteredDerivative,
    Laws,
    controller_of,
    edited,
    locked,
    simplified,
)
from spaql.controllers.law_names import law_names
from spaql.controllers.simplify import without_unused_features
from spaql.kernels.treesearch.candidates import Units

LEVEL = {
    "observation_space": Box(0.0, 2.0, (2,), np.float64),
    "action_space": Box(0.0, 10.0, (1,), np.float64),
    "observations": ("level", "set-point"),
    "actions": ("pump",),
    "sample_time": 1.0,
}
CUT = {
    "feature": [0, -1, -1],
    "threshold": [0.4, 0.0, 0.0],
    "left": [1, -1, -1],
    "right": [2, -1, -1],
    "leaf": [-1, 0, 1],
}


def test_a_candidate_of_a_search_inherits_no_proof_and_no_bounds():
    given = two_leaf_pi(smallest=True)
    given = dataclasses.replace(given, within=given.observation_space)
    units = Units(np.zeros(2), np.ones(2), np.zeros(1), np.ones(1))
    made = to_rules(from_rules(given, units, one_leaf(1, 2, listed=False)), units, given)
    assert not made.smallest
    assert made.within is None
    assert (made.rate_limit, made.features) == (given.rate_limit, given.features)


def test_a_search_that_finds_nothing_returns_what_it_judged():
    problem = spaql.make_problem("spaql/Oven-v0")
    given = Controller(
        features=(Error("error", "set-point", "temperature"),),
        laws=[[0.0], [1.0]],
        **CUT,
        observation_space=problem.states.space,
        action_space=problem.actions.space,
        observations=problem.states.names,
        actions=problem.actions.names,
        sample_time=5.0,
        hysteresis=30.0,
    )
    agent = spaql.TreeSearch(problem, seed=0, max_leaves=2).start_from(given)
    agent.learn(2 * problem.horizon, progress_bar=False)
    assert not any(agent.policy.hysteresis)
    plain = dataclasses.replace(given, hysteresis=())
    seen = problem.states.space.low
    assert agent.policy.predict(seen)[0] == plain.predict(seen)[0]


def test_an_action_is_not_given_to_a_leaf_whose_law_is_a_change():
    with pytest.raises(SettingError, match="velocity form"):
        edited(two_leaf_pi(form="velocity"), 1, [5.0])
    other = edited(two_leaf_pi(form="velocity"), 1, offset=5.0)
    assert other.laws.offset[other.box(1)[2]].tolist() == [5.0]


@pytest.mark.parametrize(("start", "is_action"), [(3.0, True), (4.0, True), (3.5, False), (5.0, False)])
def test_a_discrete_start_is_the_number_of_an_action(start, is_action):
    space = {**LEVEL, "action_space": Discrete(2, start=3), "actions": ("close", "open")}
    if is_action:
        assert Controller(laws=[3, 4], **CUT, start=start, **space).start == (start,)
        return
    with pytest.raises(SettingError, match="start"):
        Controller(laws=[3, 4], **CUT, start=start, **space)


def test_limits_may_be_numbers_of_numpy():
    assert two_leaf_pi(rate_limit=np.float32(3)).rate_limit == (3.0,)
    assert two_leaf_pi(rate_limit=np.array([3.0])).rate_limit == (3.0,)


def test_a_controller_over_features_is_simplified_for_its_inputs_only():
    tree = Controller(
        features=(Error("error", "set-point", "level"),),
        laws=Laws([[[1.0]], [[2.0]]], [[0.0], [0.0]]),
        **CUT,
        **LEVEL,
    )
    with pytest.raises(SettingError, match="error"):
        simplified(tree, np.ones((10, 2)))
    assert simplified(tree, np.ones((10, 1))).n_leaves == 1
    with pytest.raises(SettingError, match="features"):
        controller_of(tree, within=tree.observation_space)


def test_locks_stay_without_unused_features():
    tree = two_leaf_pi(
        features=(*two_leaf_pi().features, Difference("change", "error")), laws=_three_inputs()
    )
    small = without_unused_features(locked(tree, 1))
    assert [feature.name for feature in small.features] == ["error", "integral"]
    lock = small.locks[0]
    assert (lock.low.tolist(), lock.high.tolist()) == ([-np.inf, -np.inf], [0.4, np.inf])
    again = without_unused_features(dataclasses.replace(locked(tree, 2), feature=[1, -1, -1]))
    assert again.locks[0].low.tolist() == [0.4, -np.inf]


def _three_inputs() -> Laws:
    return Laws([[[3.1, 0.7, 0.0]], [[6.3, 0.35, 0.0]]], [[0.0], [0.5]])


def test_derivatives_with_two_filters_are_not_one():
    features = [
        Error("error", "set-point", "level"),
        FilteredDerivative("fast", "error", 1.0),
        FilteredDerivative("slow", "error", 20.0),
    ]
    pd = Controller.of_laws(features, {"pump": {"error": 2.0, "fast": 1.0, "slow": 3.0}}, **LEVEL)
    assert law_names(pd) == ("a PD controller, Kp = 2, Td = 0.5 s, filter 1 s, plus 3 * slow",)
    features = [
        features[0],
        *(Difference(name, "error") for name in ("a", "b")),
        Difference("s", "set-point"),
    ]
    gains = {"error": 0.5, "a": 2.0, "b": -2.0, "s": 1.0}
    assert law_names(Controller.of_laws(features, {"pump": gains}, form="velocity", **LEVEL)) == ()
    assert spaql.controllers.text(Controller.of_laws(features, {"pump": gains}, form="velocity", **LEVEL))
