"""Verdicts beside a controller: what is read is what was written, and never about another controller."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import spaql
from spaql import archive
from spaql.controllers import Controller
from spaql.verify import Statement
from spaql.verify.stored import load_verdict, save_verdict, verdict_about
from verify_programs import controller_for, one_cut

CAR = spaql.make_problem("MountainCar-v0")


def controller(threshold: float = 0.0) -> spaql.Design:
    made = Controller(
        laws=[0, 2],
        observation_space=CAR.states.space,
        action_space=CAR.actions.space,
        **one_cut(threshold, feature=1),
    )
    return spaql.Design(made, CAR)


@pytest.fixture(scope="module")
def refuted() -> spaql.verify.Verdict:
    starts = {"position": (-1.2, 0.6), "speed": (-0.07, 0.07)}
    asked = Statement(starts=starts, termination="goal", within=20, allowed={"position": (-np.inf, 10.0)})
    return spaql.verify(controller(), statement=asked, seconds=2, levels=9)


def test_what_is_read_is_what_was_written(refuted: spaql.verify.Verdict, tmp_path: Path) -> None:
    save_verdict(refuted, tmp_path / "a.verdict")
    found = load_verdict(tmp_path / "a.verdict")
    assert found.text == refuted.text
    assert found.counterexample == refuted.counterexample is not None
    assert found.statement == refuted.statement
    for name in ("proven", "longest", "names", "fingerprint", "finished", "delayed"):
        assert getattr(found, name) == getattr(refuted, name)


def test_of_many_cells_the_worst_of_several_are_stored(refuted: spaql.verify.Verdict, tmp_path: Path) -> None:
    assert refuted.status.shape == (512, 512)
    save_verdict(refuted, tmp_path / "a.verdict")
    found = load_verdict(tmp_path / "a.verdict")
    assert found.status.shape == (256, 256)
    assert (tmp_path / "a.verdict").stat().st_size < 400_000
    fine = refuted.status.reshape(256, 2, 256, 2)
    coarse = found.status
    assert np.array_equal(coarse == 1, np.any(fine == 1, axis=(1, 3)))
    assert np.array_equal(coarse == 0, np.all(fine == 0, axis=(1, 3)))
    assert np.array_equal(found.times >= 0, np.all(refuted.times.reshape(256, 2, 256, 2) >= 0, axis=(1, 3)))


def test_a_verdict_about_another_controller_is_refused(refuted: spaql.verify.Verdict, tmp_path: Path) -> None:
    path = tmp_path / "a.verdict"
    assert verdict_about(path, controller()) is None
    save_verdict(refuted, path)
    assert verdict_about(path, controller()).text == refuted.text
    with pytest.raises(spaql.SettingError, match="another controller"):
        verdict_about(path, controller(1e-9))


def plant(gain: float) -> spaql.Dynamics:
    def step(state, action):
        return (0.9 * state[0] + gain * action[0],), 0.0, False

    return spaql.Dynamics(
        id="stored/Lag-v0",
        start=lambda rng: (rng.uniform(-1.0, 1.0),),
        step=step,
        observations={"x": (-1, 1)},
        actions={"u": (-1, 1)},
        horizon=50,
        reference=(0.0,),
    )


def test_a_verdict_about_equations_that_were_edited_is_refused(tmp_path: Path) -> None:
    made = plant(0.1)
    tree = controller_for(made, [[0.0]])
    save_verdict(spaql.verify(tree, made), tmp_path / "a.verdict")
    same = spaql.Design(tree, spaql.make_problem(plant(0.1)))
    assert verdict_about(tmp_path / "a.verdict", same).proven == 1.0
    edited = spaql.Design(tree, spaql.make_problem(plant(0.2)))
    with pytest.raises(spaql.SettingError, match="other equations"):
        verdict_about(tmp_path / "a.verdict", edited)


def test_hostile_files_raise_archive_errors(refuted: spaql.verify.Verdict, tmp_path: Path) -> None:
    path = tmp_path / "a.verdict"
    save_verdict(refuted, path)
    document = archive.load(path)
    rng = np.random.default_rng(0)
    changes = [
        ("proven", 2.0), ("proven", "all"), ("names", ["x"]), ("names", "xy"), ("within", -1), ("boxes", {}),
        ("boxes", {"starts": ["a"], "target": None, "allowed": []}), ("termination", "never"),
        ("counterexample", {}), ("kind", "certificate"), ("longest", 1.5), ("seconds", -1.0),
    ]  # fmt: skip
    for name, value in changes:
        archive.save(path, {**document.data, name: value}, document.arrays)
        with pytest.raises(spaql.ArchiveError):
            load_verdict(path)
    for name in document.arrays:
        without = {key: array for key, array in document.arrays.items() if key != name}
        archive.save(path, document.data, without)
        with pytest.raises(spaql.ArchiveError):
            load_verdict(path)
        archive.save(path, document.data, without | {name: rng.normal(size=(3, 5)).astype(np.float32)})
        with pytest.raises(spaql.ArchiveError):
            load_verdict(path)


def test_a_coarser_verdict_keeps_its_shares(refuted: spaql.verify.Verdict) -> None:
    small = refuted.coarser(16)
    assert small.status.size == 16
    assert small.proven == refuted.proven
    assert dataclasses.replace(small, status=refuted.status, times=refuted.times).text == refuted.text
