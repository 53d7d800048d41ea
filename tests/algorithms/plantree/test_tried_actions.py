"""Which actions a log has tried: a large action far from here says nothing of one here."""

import numpy as np

from spaql.algorithms.plantree.support import TriedActions


def tried(*, listed: bool = False) -> tuple[TriedActions, np.ndarray, np.ndarray]:
    """Return the actions of a log that plays large ones, or the last of a list, at the sides only."""
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (4000, 2))
    aside = np.abs(z[:, 0]) > 0.5
    small = rng.uniform(-0.3, 0.3, 4000)
    large = rng.uniform(-1, 1, 4000)
    inputs = np.where(aside, large, small)[:, np.newaxis]
    if listed:
        inputs = (aside & (large > 0)).astype(float)[:, np.newaxis]
    return TriedActions(z, inputs, listed), z, inputs


def test_an_action_that_was_tried_elsewhere_is_unseen() -> None:
    actions, z, inputs = tried()
    here = np.zeros((3, 2))
    there = np.full((3, 2), 0.9)
    some = np.array([[0.25], [0.95], [-0.95]])
    assert actions.unseen(here, some).tolist() == [False, True, True]
    assert actions.unseen(there, some).tolist() == [False, False, False]
    assert not actions.untried(some).any()
    assert actions.untried(np.array([[1.01], [-1.01], [0.5]])).tolist() == [True, True, False]
    assert not actions.unseen(z, inputs).any()
    assert not actions.untried(inputs).any()


def test_an_action_of_a_list_that_was_tried_elsewhere_is_unseen() -> None:
    actions, z, inputs = tried(listed=True)
    last = np.ones((1, 1))
    assert actions.unseen(np.zeros((1, 2)), last).tolist() == [True]
    assert actions.unseen(np.full((1, 2), 0.9), last).tolist() == [False]
    assert not actions.unseen(z, inputs).any()


def test_states_that_are_all_the_same_are_one_region() -> None:
    actions = TriedActions(np.zeros((500, 2)), np.linspace(-0.5, 0.5, 500)[:, np.newaxis], False)
    assert actions.unseen(np.ones((2, 2)), np.array([[0.9], [1.1]])).tolist() == [False, True]
