"""Edits of trees that are their own mirror image: of the half that is shown, and of its image with it."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium.spaces import Box, Discrete

import spaql
from spaql.cli import main
from spaql.controllers import Laws, edited, locked, moved, text
from spaql.controllers.mirrored import folded
from spaql.problems import make_problem

PROBLEM = make_problem("Pendulum-v1")
POINTS = np.random.default_rng(0).uniform([-1, -1, -8], [1, 1, 8], (500, 3))
SIGNS = np.array([1.0, -1.0, -1.0])
PENDULUM = {
    "observation_space": PROBLEM.states.space,
    "action_space": PROBLEM.actions.space,
    "observations": PROBLEM.states.names,
    "actions": PROBLEM.actions.names,
}


def swing(cut: float = 0.7) -> spaql.Controller:
    """Three laws where the speed is not negative, and their images; a tree with fewer leaves does the same.

    The law of leaf 1 is its own image, and so the minimal tree has other numbers.
    """
    gain = np.array([[[0.0, -9.0, -2.0]], [[0.5, 0.0, 0.0]], [[0.0, 3.0, 0.0]]])
    offset = np.array([[0.0], [1.0], [0.5]])
    return spaql.Controller(
        feature=[2, 0, 0, 1, -1, -1, 1, -1, -1, -1, -1],
        threshold=[0.0, cut, cut, np.nextafter(-0.2, 1), 0, 0, 0.2, 0, 0, 0, 0],
        left=[1, 3, 6, 7, -1, -1, 9, -1, -1, -1, -1],
        right=[2, 4, 5, 8, -1, -1, 10, -1, -1, -1, -1],
        leaf=[-1, -1, -1, -1, 3, 0, -1, 5, 4, 1, 2],
        laws=Laws(np.concatenate([gain, gain * -SIGNS]), np.concatenate([offset, -offset])),
        **PENDULUM,
    )


def is_mirrored(tree: spaql.Controller) -> bool:
    return np.array_equal(tree.act(POINTS * SIGNS), -tree.act(POINTS)) and folded(tree) is not None


def shown(source: Path, *words: str) -> str:
    result = CliRunner().invoke(main, ["show", str(source), *words])
    assert result.exit_code == 0, result.output
    return result.output


def numbered(output: str) -> dict[int, str]:
    """The laws that are shown, by the numbers of their leaves."""
    lines = [line.split("  # leaf ") for line in output.splitlines() if "  # leaf " in line]
    return {int(number): law.strip() for law, number in lines}


def test_the_leaf_that_is_shown_is_the_leaf_that_is_edited(tmp_path: Path) -> None:
    assert is_mirrored(swing())
    run = tmp_path / "run.spaql"
    out = tmp_path / "edited.spaql"
    spaql.Design(swing(), PROBLEM).save(run)
    before = numbered(shown(run, "--numbers"))
    assert sorted(before) == [1, 2, 3]
    for leaf in before:
        words = ["--leaf", str(leaf), "--gain", "speed=-1.25", "--out", str(out), "--episodes", "2"]
        done = CliRunner().invoke(main, ["edit", str(run), *words])
        assert done.exit_code == 0, done.output
        assert "Changed where speed [rad/s] >= 0, and mirrored where it is below 0." in done.output
        after = numbered(shown(out, "--numbers"))
        assert [one for one in before if after[one] != before[one]] == [leaf]
        assert "- 1.25 * speed [rad/s]" in after[leaf]
        assert is_mirrored(spaql.Design.load(out).controller)


def test_the_explanation_names_the_leaf_that_is_shown(tmp_path: Path) -> None:
    spaql.Design(swing(), PROBLEM).save(tmp_path / "run.spaql")
    for at in ("0.1,0.5,2", "0.1,-0.5,-2"):
        told = shown(tmp_path / "run.spaql", f"--at={at}")
        assert "leaf 2 of 3 for one half" in told
        assert ("in the mirror" in told) == at.endswith("-2")


def test_a_rule_moves_with_its_image() -> None:
    tree = moved(swing(), 1, 0.5)
    assert is_mirrored(tree)
    assert "if cos(angle) < 0.5:  # rule 1" in text(tree, numbered=True)
    tree = moved(swing(), 2, 0.25)
    assert is_mirrored(tree)
    between = np.array([[0.0, 0.22, 1.0], [0.0, -0.22, -1.0]])
    assert (tree.act(between) != swing().act(between)).all()
    beside = POINTS[np.abs(np.abs(POINTS[:, 1]) - 0.225) > 0.03]
    np.testing.assert_array_equal(tree.act(beside), swing().act(beside))


def test_a_locked_leaf_is_locked_in_the_mirror() -> None:
    tree = edited(swing(), 3, gains={"speed": -1.0}, lock=True)
    assert is_mirrored(tree)
    assert len(tree.locks) == 2
    with pytest.raises(spaql.SettingError, match="Leaf 3 is locked"):
        edited(tree, 3, offset=0.0)
    assert is_mirrored(edited(tree, 1, offset=0.1))
    assert len(edited(tree, 1, offset=0.1).locks) == 2
    only = locked(swing(), 1)
    assert is_mirrored(only)
    np.testing.assert_array_equal(only.act(POINTS), swing().act(POINTS))


def test_a_threshold_of_the_side_stays_above_0() -> None:
    tree = spaql.Controller(
        feature=[0, 0, 0, -1, -1, -1, -1],
        threshold=[0.0, np.nextafter(-1.0, 0), 1.0, 0, 0, 0, 0],
        left=[1, 3, 5, -1, -1, -1, -1],
        right=[2, 4, 6, -1, -1, -1, -1],
        leaf=[-1, -1, -1, 1, 0, 1, 0],
        laws=[0, 1],
        observation_space=Box(-9.0, 9.0, (2,)),
        action_space=Discrete(3),
    )
    assert folded(tree) is not None
    with pytest.raises(spaql.SettingError, match="lies above 0"):
        moved(tree, 1, -0.5)
    assert moved(tree, 1, 0.5).act([[0.7, 0.0], [-0.7, 0.0]]).tolist() == [0, 1]
    # The image of the third action is not known, so that only one half can have it.
    alone = edited(tree, 2, 2)
    assert folded(alone) is None
    assert alone.act([[2.0, 0.0], [-2.0, 0.0]]).tolist() == [2, 1]


def test_an_edit_without_a_mirror_image_says_so(tmp_path: Path) -> None:
    tree = spaql.Controller(
        feature=[2, 2, 2, -1, -1, -1, -1],
        threshold=[0.0, np.nextafter(-1.0, 0), 1.0, 0, 0, 0, 0],
        left=[1, 3, 5, -1, -1, -1, -1],
        right=[2, 4, 6, -1, -1, -1, -1],
        leaf=[-1, -1, -1, 1, 0, 0, 1],
        laws=Laws([[[0.0, 0.0, -1.0]], [[0.0, 0.0, 3.0]]], np.zeros((2, 1))),
        **PENDULUM,
    )
    run = tmp_path / "run.spaql"
    out = tmp_path / "edited.spaql"
    spaql.Design(tree, PROBLEM).save(run)
    words = ["--leaf", "2", "--gain", "sin(angle)=-12", "--out", str(out), "--episodes", "2"]
    done = CliRunner().invoke(main, ["edit", str(run), *words])
    assert done.exit_code == 0, done.output
    assert "no longer its own mirror image" in done.output
    changed = spaql.Design.load(out).controller
    both = np.array([[0.0, 0.5, 1.1], [0.0, -0.5, -1.1]])
    assert (changed.act(both) != tree.act(both)).ravel().tolist() == [True, False]


def test_sums_are_folded_with_their_images() -> None:
    """Each half compares a sum of its own."""
    tree = spaql.Controller(
        feature=[0, 3, 2, -1, -1, -1, -1],
        threshold=[0.0, 0.5, 0.5, 0, 0, 0, 0],
        left=[1, 3, 5, -1, -1, -1, -1],
        right=[2, 4, 6, -1, -1, -1, -1],
        leaf=[-1, -1, -1, 0, 1, 2, 3],
        laws=[[-0.25], [-0.5], [0.25], [0.5]],
        combinations=[[1.0, 1.0], [-1.0, -1.0]],
        observation_space=Box(-1.0, 1.0, (2,)),
        action_space=Box(-1.0, 1.0, (1,)),
    )
    assert text(tree).splitlines() == [
        "mirror so that x0 >= 0 (x0, x1 and u0 change sign):",
        "    if x0 + x1 < 0.5:",
        "        u0 = 0.25",
        "    else:",
        "        u0 = 0.5",
    ]
    changed = edited(tree, 2, [0.75])
    assert changed.act([[0.5, 0.5], [-0.5, -0.5]]).tolist() == [[0.75], [-0.75]]
