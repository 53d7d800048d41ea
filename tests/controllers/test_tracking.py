"""Manual mode and tracking: the definition, from which exported code does not differ."""

import numpy as np
import pytest
from gymnasium.spaces import Box

from feature_controllers import random_controller, two_leaf_pi
from spaql.controllers import Controller, Error, Integral, LastAction
from spaql.controllers.tracking import tracking_gains
from spaql.export.machine import machine_of
from spaql.kernels.controller import LAST

NAN = float("nan")


def by_hand(controller: Controller, seen: np.ndarray, given: np.ndarray, memory: np.ndarray) -> np.ndarray:
    """Take a sample in manual mode; returns the actions."""
    ones = np.ones((len(seen), 1))
    return machine_of(controller).operate(seen, np.hstack([ones, given, 0 * ones, 0 * given]), memory)[0]


def sampled(controller: Controller, seen: np.ndarray, memory: np.ndarray, applied: np.ndarray) -> np.ndarray:
    """Take a sample in automatic mode, after other actions were applied; returns the actions."""
    ones = np.ones((len(seen), 1))
    commands = np.hstack([0 * ones, np.zeros_like(applied), ones, applied])
    return machine_of(controller).operate(seen, commands, memory)[0]


def two_loops(gains: dict[str, dict[str, float]], **settings) -> Controller:
    """Return a controller of two errors and their integrals, for two actions."""
    features = (
        Error("hot error", "hot set-point", "hot"),
        Error("cold error", "cold set-point", "cold"),
        Integral("hot integral", "hot error", limit=50.0),
        Integral("cold integral", "cold error", limit=20.0),
        LastAction("heater before", "heater"),
    )
    return Controller.of_laws(
        features,
        gains,
        observation_space=Box(-5.0, 5.0, (4,), np.float64),
        action_space=Box(-10.0, 10.0, (2,), np.float64),
        observations=("hot", "cold", "hot set-point", "cold set-point"),
        actions=("heater", "cooler"),
        sample_time=0.5,
        **settings,
    )


COUPLED = {
    "heater": {"hot error": 2.0, "hot integral": 0.5, "cold integral": -0.2},
    "cooler": {"cold error": -1.0, "hot integral": 0.1, "cold integral": -0.7},
}


def test_after_a_manual_sample_the_laws_give_the_manual_actions():
    controller = two_loops(COUPLED)
    memory = controller.new_memory(1)
    seen = np.array([[0.3, -0.4, 1.0, 0.5]])
    wanted = np.array([[4.0, -3.0]])
    for _ in range(3):
        controller.sample(seen, memory)
    assert np.array_equal(by_hand(controller, seen, wanted, memory), wanted)
    assert controller.sample(seen, memory).action == pytest.approx(wanted, abs=1e-12)


def test_after_tracking_the_law_starts_from_the_applied_action():
    controller = two_loops(COUPLED)
    memory = controller.new_memory(1)
    seen = np.array([[0.3, -0.4, 0.3, -0.4]])
    controller.sample(seen, memory)
    applied = np.array([[4.0, -3.0]])
    assert sampled(controller, seen, memory, applied) == pytest.approx(applied, abs=1e-12)


def test_tracking_the_action_that_was_given_changes_nothing():
    for seed in range(6):
        controller = random_controller(seed)
        memory = controller.new_memory(5)
        rng = np.random.default_rng(seed)
        for _ in range(20):
            seen = rng.uniform(-2, 2, (5, 4))
            other = memory.copy()
            controller.sample(seen, memory)
            sampled(controller, seen, other, other[:, LAST : LAST + 2].copy())
            assert np.array_equal(memory, other)


def test_gains_solve_for_the_smallest_relative_changes():
    gains = tracking_gains(two_loops(COUPLED))[0, [2, 3]]
    assert np.array([[0.5, -0.2], [0.1, -0.7]]) @ gains == pytest.approx(np.eye(2), abs=1e-12)
    shared = tracking_gains(two_loops({"heater": {"hot integral": 0.5, "cold integral": 0.5}}))[0, [2, 3]]
    limits = np.array([50.0, 20.0])
    assert shared[:, 0] == pytest.approx(limits * np.linalg.pinv([limits * 0.5])[:, 0])
    assert not shared[:, 1].any()


def test_an_action_that_no_integral_is_left_for_is_not_followed():
    dependent = {"heater": {"hot integral": 0.5}, "cooler": {"hot integral": 0.25}}
    gains = tracking_gains(two_loops(dependent))[0]
    assert gains[2].tolist() == [2.0, 0.0]
    assert not tracking_gains(two_loops(COUPLED, form="velocity")).any()


def test_limits_hold_in_manual_mode_but_not_the_dead_band():
    controller = two_leaf_pi(dead_band=0.5)
    memory = controller.new_memory(1)
    seen = np.array([[1.0, 1.0]])
    given = [by_hand(controller, seen, np.array([[x]]), memory)[0, 0] for x in (0.2, 9.0, NAN, -9.0, 1e31)]
    assert given == pytest.approx([0.2, 1.7, 1.7, 0.2, 0.2])  # at most 1.5 in a sample


def test_the_last_action_is_the_one_that_was_given_or_applied():
    controller = two_loops({"heater": {"heater before": 1.0}})
    memory = controller.new_memory(1)
    seen = np.zeros((1, 4))
    by_hand(controller, seen, np.array([[3.0, 0.0]]), memory)
    assert controller.sample(seen, memory).action[0, 0] == 3.0
    assert sampled(controller, seen, memory, np.array([[2.0, NAN]]))[0, 0] == 2.0


def test_small_changes_add_up_in_velocity_form_while_the_actuator_is_tracked():
    error = Error("error", "set-point", "level")
    controller = Controller.of_laws(
        [error],
        {"pump": {"error": 0.1}},
        observation_space=Box(0.0, 2.0, (2,), np.float64),
        action_space=Box(0.0, 10.0, (1,), np.float64),
        observations=("level", "set-point"),
        actions=("pump",),
        sample_time=1.0,
        form="velocity",
        dead_band=0.25,
    )
    memory = controller.new_memory(1)
    given = []
    for _ in range(4):
        applied = memory[:, LAST : LAST + 1].copy()
        given.append(sampled(controller, np.array([[0.0, 1.0]]), memory, applied)[0, 0])
    assert given == pytest.approx([0.0, 0.0, 0.3, 0.3])
