"""What an operator sees of an exported controller with memory: no kick, no windup, bumpless transfer.

Every target is run for real; Structured Text also by a compiler, through another parser.
"""

from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box

from memory_targets import MANUAL, TARGETS
from spaql.controllers import Controller, Error, FilteredDerivative, Integral
from spaql.export.machine import machine_of
from spaql.plugins.fmu.target import Fmu

EVERY = {**TARGETS, "fmu": Fmu(), "st compiled": TARGETS["st"]}
OPERATED = (*sorted(MANUAL), "st compiled")
KP = 2.0
KI = 0.5
KD = 1.0
SAMPLE_TIME = 0.5
LOW = 0.0
HIGH = 10.0


def pid(**settings) -> Controller:
    """Return a PID controller whose derivative acts on the measurement."""
    features = (
        Error("error", "set-point", "level"),
        Integral("integral", "error", limit=100.0),
        FilteredDerivative("slope", "level", time_constant=0.5),
    )
    return Controller.of_laws(
        features,
        {"pump": {"error": KP, "integral": KI, "slope": -KD}},
        observation_space=Box(0.0, 5.0, (2,), np.float64),
        action_space=Box(LOW, HIGH, (1,), np.float64),
        observations=("level [m]", "set-point [m]"),
        actions=("pump [V]",),
        sample_time=SAMPLE_TIME,
        **settings,
    )


def played(
    target: str, controller: Controller, folder: Path, level, setpoint, manual=None, applied=None
) -> np.ndarray:
    """Return the actions of exported code in an episode.

    `manual` and `applied` are the actions given by hand and those that were applied, with NaN for none.
    """
    machine = machine_of(controller)
    made = EVERY[target]
    inputs = [np.broadcast_to(level, len(setpoint)), setpoint]
    for action in (manual, applied) if made.manual else ():
        given = np.full(len(setpoint), np.nan) if action is None else np.asarray(action)
        inputs += [~np.isnan(given), np.nan_to_num(given)]
    resets = np.zeros(len(setpoint))
    resets[0] = 1.0
    samples = np.stack([resets, *inputs], axis=1).astype(np.float64)
    files = made.write(machine, "controller")
    if target == "st compiled":
        pytest.importorskip("blark")
        from st_to_c import Block

        block = Block(files["controller.st"].decode(), folder)
        return block.play(samples)[:, 0]
    return made.load(machine, files, "controller", folder)(samples[np.newaxis])[0, :, 0]


@pytest.mark.parametrize("target", EVERY)
def test_no_kick(target: str, tmp_path: Path) -> None:
    """A step of the set-point moves the action by the proportional part, once, and not by a derivative."""
    setpoint = np.repeat([1.0, 2.0], [5, 5])
    actions = played(target, pid(), tmp_path, 1.0, setpoint)
    changes = np.diff(actions)
    assert changes[:4] == pytest.approx(0.0)
    assert changes[4] == pytest.approx(KP)
    assert changes[5:] == pytest.approx(KI * SAMPLE_TIME)


@pytest.mark.parametrize("target", EVERY)
def test_no_windup(target: str, tmp_path: Path) -> None:
    """After 500 samples at its limit, the action leaves it in the sample in which the error is reversed."""
    setpoint = np.repeat([5.0, 0.5], [500, 3])
    actions = played(target, pid(), tmp_path, 1.0, setpoint)
    assert (actions[20:500] == HIGH).all()
    integral = (HIGH - KP * 4.0) / KI  # the most that the integral may hold, and one sample of it
    most = KP * -0.5 + KI * (integral + SAMPLE_TIME * 4.0)
    assert LOW <= actions[500] <= most < HIGH / 2


@pytest.mark.parametrize("target", OPERATED)
def test_no_windup_behind_a_limiter(target: str, tmp_path: Path) -> None:
    """A limiter after the controller holds 3 V: with tracking the action leaves it at once."""
    setpoint = np.repeat([2.0, 0.9], [300, 3])
    limit = 3.0
    applied = np.full(len(setpoint), np.nan)
    free = played(target, pid(), tmp_path, 1.0, setpoint)
    applied[1:300] = limit
    tracked = played(target, pid(), tmp_path, 1.0, setpoint, applied=applied)
    assert free[300] > 2 * limit  # without tracking it would have to unwind
    assert tracked[10:300] == pytest.approx(limit + KI * SAMPLE_TIME)  # a sample's part above it
    assert tracked[300] < limit


@pytest.mark.parametrize("target", OPERATED)
@pytest.mark.parametrize("manual", [0.5, 6.25, 9.5])
def test_bumpless(target: str, manual: float, tmp_path: Path) -> None:
    """From manual to automatic mode the action changes by the proportional part of the change alone."""
    setpoint = np.full(30, 2.0)
    by_hand = np.full(30, np.nan)
    by_hand[5:20] = manual
    actions = played(target, pid(), tmp_path, 1.0, setpoint, manual=by_hand)
    assert (actions[5:20] == manual).all()
    assert actions[20] == pytest.approx(manual, abs=1e-12)
    assert actions[21] == pytest.approx(min(manual + KI * SAMPLE_TIME, HIGH))
    moved = setpoint.copy()
    moved[20:] += 0.1
    actions = played(target, pid(), tmp_path, 1.0, moved, manual=by_hand)
    assert actions[20] == pytest.approx(manual + KP * 0.1, abs=1e-12)


@pytest.mark.parametrize("target", OPERATED)
def test_bumpless_with_a_rate_limit_and_without_a_reading(target: str, tmp_path: Path) -> None:
    """Manual mode holds the rate limit, works while a sensor fails, and needs one sample with a reading."""
    level = np.full(12, 1.0)
    level[4:9] = np.nan
    by_hand = np.full(12, np.nan)
    by_hand[4:10] = 3.0
    actions = played(target, pid(rate_limit=1.0), tmp_path, level, np.full(12, 1.5), manual=by_hand)
    changes = np.abs(np.diff(actions))
    assert (changes <= 0.5 + 1e-12).all()
    assert (actions[8:10] == 3.0).all()
    assert actions[10] == pytest.approx(3.0, abs=1e-12)
