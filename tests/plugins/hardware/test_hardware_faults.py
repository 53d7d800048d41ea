"""A board that misbehaves: the safe action comes in time, whatever arrives."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from simulated_board import SimulatedBoard

from nightly import thorough
from scripted_board import Scripted
from spaql.errors import BadEnvironmentError
from spaql.plugins.hardware import Hardware
from spaql.plugins.hardware.protocol import encoded

PERIOD = 0.03
INJECTIONS = Path(__file__).parents[3] / "benchmarks" / "hardware_faults.py"


@contextmanager
def scripted(
    script: Callable[[int], bytes], floods: bytes = b"", **settings: Any
) -> Iterator[tuple[Scripted, Hardware]]:
    board = Scripted(script, floods)
    board.thread.start()
    given: dict[str, Any] = {"sample_time": PERIOD, "safe_action": 0.0, "horizon": 50, "most_misses": 3}
    given |= {"observations": {"x": (-20, 20), "v": (-20, 20)}, "actions": {"u": (-12, 12)}}
    plant = Hardware(board.port, **(given | settings))
    yield board, plant
    plant.close()
    board.is_over.set()
    board.thread.join()


def sample(number: int, x: float = 0.1, last: int = 65_535) -> bytes:
    return encoded("O", number % 65_536, last, "R", x, 0.0)


def played_to_the_end(plant: Hardware) -> dict[str, Any]:
    plant.reset()
    over = False
    while not over:
        _, _, terminated, truncated, info = plant.step([5.0])
        over = terminated or truncated
    return info


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise",
    [b"xxx\n" * 500, b"x" * 2_000, b"\n" * 2_000, sample(0) * 50, encoded("U") * 200],
    ids=["damaged lines", "no line ends", "empty lines", "an old sample", "confirmations"],
)
def test_a_flood_delays_neither_the_safe_action_nor_the_end(noise: bytes) -> None:
    with scripted(lambda k: sample(k) if k < 5 else b"", noise) as (board, plant):
        info = played_to_the_end(plant)
        before = time.monotonic()
        plant.close()
        assert time.monotonic() - before < 2.0
    assert info["stopped"].startswith("4 observations in a row did not come in time")
    after = [(at, words) for at, words in board.heard if at > board.began_to_flood]
    assert [words[-1] for _, words in after if words[0] == "A"] == ["0"] * 3
    # The flood began when a sample was due: half a sample later the time was up.
    assert after[0][0] - board.began_to_flood < 1.5 * PERIOD + 0.1  # of a busy machine


@pytest.mark.slow
def test_close_ends_although_the_board_floods_and_does_not_confirm() -> None:
    with scripted(lambda k: sample(k) if k < 2 else b"", b"xxx\n" * 500) as (board, plant):
        plant.reset()
        plant.step([5.0])
        time.sleep(2 * PERIOD)
        assert board.began_to_flood < time.monotonic()
        before = time.monotonic()
        with pytest.warns(RuntimeWarning, match="did not confirm the safe action"):
            plant.close()
        assert time.monotonic() - before < 2.0
    assert board.letters.startswith("?QGAQ")


def test_an_emergency_in_the_first_observation_stops_before_any_action() -> None:
    with scripted(lambda k: sample(k, 99.0), emergency="abs(x) > 15") as (board, plant):
        seen, info = plant.reset()
        assert seen[0] == 99.0
        assert info["stopped"] == "abs(x) > 15 holds"
        assert plant.step([5.0])[2]
        with pytest.raises(BadEnvironmentError, match="was stopped"):
            plant.reset()
    assert set(board.letters) == {"?", "Q", "G", "X"}
    assert board.letters.startswith("?QGX")


def test_an_emergency_is_found_in_an_observation_that_was_overtaken() -> None:
    with scripted(lambda k: sample(k, 17.0 if k == 3 else 0.1), emergency="abs(x) > 15") as (_, plant):
        plant.reset()
        time.sleep(6 * PERIOD)
        _, _, terminated, _, info = plant.step([5.0])
    assert terminated
    assert info["stopped"] == "abs(x) > 15 holds"


def test_a_value_outside_of_its_range_is_flagged_and_one_far_outside_is_not_acted_upon(
    tmp_path: Path,
) -> None:
    values = [0.1, 0.1, 23.9, 0.1, 1e308, 0.1, 0.1]  # a tenth of the range of 40 is believed
    log = tmp_path / "log.csv"
    with scripted(lambda k: sample(k, values[min(k, 6)]), log=log, most_misses=50) as (board, plant):
        plant.reset()
        flagged = []
        while plant.counts.samples < 7:
            seen, _, _, _, info = plant.step([5.0])
            assert abs(seen[0]) < 24
            flagged += [(float(seen[0]), info["outside"])] if info["outside"] else []
    rows = [line.split(",") for line in log.read_text(encoding="utf-8").splitlines()]
    outside = {row[1]: (row[3], row[-1]) for row in rows[1:] if row[-1]}
    assert outside == {"2": ("23.9", "x"), "4": ("", "x")}
    assert plant.counts.outside == 2
    assert ["A", "4", "0"] in [words for _, words in board.heard]
    assert flagged in ([], [(23.9, ("x",))])  # a busy machine may have overtaken it
    assert plant.counts.missed >= 1


def test_a_sample_that_cannot_have_been_taken_yet_is_damaged() -> None:
    with scripted(lambda k: sample(k if k < 4 else k + 30_000), horizon=1_000) as (board, plant):
        info = played_to_the_end(plant)
    assert info["stopped"].startswith("4 observations in a row")
    assert info["sample"] < 100
    assert plant.counts.damaged >= 3
    assert board.letters.endswith("X")


def test_a_sample_that_comes_twice_is_not_counted_as_late() -> None:
    with scripted(lambda k: sample(k) * 2) as (_, plant):
        plant.reset()
        for _ in range(5):
            plant.step([5.0])
    assert plant.counts.late <= plant.counts.missed + plant.counts.gaps
    assert plant.counts.damaged >= 5


def test_no_observation_within_its_range_says_so() -> None:
    with (
        scripted(lambda k: sample(k, 1e9)) as (_, plant),
        pytest.raises(BadEnvironmentError, match=r"no observations that can be used .*beyond their ranges"),
    ):
        plant.reset()


PLAYED = """
import sys
from spaql.plugins.hardware import Hardware

plant = Hardware(sys.argv[1], observations={"x": (-20, 20), "v": (-20, 20)}, actions={"u": (-12, 12)},
                 sample_time=0.03, safe_action=0.0, horizon=100_000, most_misses=100_000)
plant.reset()
while True:
    plant.step([5.0])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGINT for one process")
@pytest.mark.parametrize("floods", [False, True])
def test_ctrl_c_plays_the_safe_action_and_ends_the_process(floods: bool) -> None:
    board = Scripted(lambda k: sample(k) if k < 8 or not floods else b"", b"xxx\n" * 500 if floods else b"")
    board.thread.start()
    process = subprocess.Popen(
        [sys.executable, "-c", PLAYED, board.port],
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    end = time.monotonic() + 60
    while board.letters.count("A") < 12:
        assert time.monotonic() < end
        time.sleep(0.005)
    interrupted = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    ended = time.monotonic()
    board.is_over.set()
    assert b"KeyboardInterrupt" in errors
    first = next(at for at, words in board.heard if at > interrupted and words[0] == "Q")
    assert first - interrupted < PERIOD + 0.1  # of a busy machine
    assert ended - interrupted < 5.0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGINT for one process")
def test_injected_faults_are_answered_in_time() -> None:
    """Run a small version of the benchmark, which fails if a safe action is missing or not the last word."""
    command = [sys.executable, str(INJECTIONS), "--seeds", f"0-{thorough(5) - 1}", "--period", "0.05"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in done.stderr.splitlines()]
    assert {row["fault"] for row in rows} >= {"flood", "silence", "out of range", "Ctrl-C"}
    assert all(row["ended"] < 5.0 for row in rows), done.stdout


@pytest.mark.slow
def test_a_board_that_is_well_is_not_refused() -> None:
    """What refuses a sample must not refuse one of a sound board, at its first samples and later."""
    with SimulatedBoard("spaql/DCMotor-v0", sample_time=0.01, safe_action=0.0) as board:
        given: dict[str, Any] = {"observations": board.observations, "actions": board.actions}
        given |= {"sample_time": 0.01, "safe_action": 0.0, "horizon": 60, "most_misses": 100}
        with Hardware(board.port, **given) as plant:
            for _ in range(5):
                played_to_the_end(plant)
                plant.reset()
            assert plant.counts.damaged == 0
