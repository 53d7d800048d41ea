"""A plant on the bench, played over TCP, a pseudo-terminal, and against the board's side in C."""

import _thread
import csv
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated_board import SimulatedBoard

import spaql
from spaql.controllers import RandomPolicy
from spaql.errors import BadEnvironmentError, MissingExtraError, SettingError
from spaql.plugins.hardware import Hardware
from spaql.plugins.hardware.protocol import decoded, encoded, unwrapped
from spaql.problems import make_problem
from spaql.problems.log import read_log

MOTOR = "spaql/DCMotor-v0"
PERIOD = 0.01
WATCHDOG = 3
BENCH = Path(__file__).parents[3] / "examples" / "bench"
COLUMNS = ["position [rad]", "speed [rad/s]", "set-point [rad]"]
VOLTAGE = "voltage [V]"


def needs_a_serial_port() -> None:
    pytest.importorskip("serial")
    if not hasattr(os, "openpty"):
        pytest.skip("there is no pseudo-terminal on this system")


@contextmanager
def bench(terminal: bool = False, **faults: float) -> Iterator[SimulatedBoard]:
    with SimulatedBoard(
        MOTOR, sample_time=PERIOD, safe_action=0.0, terminal=terminal, watchdog=WATCHDOG, **faults
    ) as board:
        yield board


def connected(board: SimulatedBoard, **settings: Any) -> Hardware:
    """The plant of a board. By default it may miss many observations: test machines are busy."""
    given = {"sample_time": PERIOD, "safe_action": 0.0, "horizon": 100, "most_misses": 100} | settings
    return Hardware(board.port, observations=board.observations, actions=board.actions, **given)


def played(plant: Hardware, rng: np.random.Generator) -> dict[str, Any]:
    """Play an episode of random actions, and return the last info."""
    plant.reset()
    done = False
    while not done:
        _, _, terminated, truncated, info = plant.step(rng.uniform(-12, 12, 1))
        done = terminated or truncated
    return info


def rows_of(log: Path) -> list[dict[str, str]]:
    with log.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def until(condition: Any, seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.002)


def assert_the_log_is_true(rows: list[dict[str, str]], board: SimulatedBoard) -> None:
    """Every sample up to the last row has its row, and what is in it is what the board knows."""
    known = {(one.episode, one.number): one for one in board.record}
    there = {(int(row["episode"]), int(row["sample"])): row for row in rows}
    assert len(there) == len(rows)
    for episode in {key[0] for key in there}:
        numbers = [key[1] for key in there if key[0] == episode]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    last = dict(there.keys())  # the last sample of each episode
    for key, row in there.items():
        if row[COLUMNS[0]]:
            assert tuple(float(row[name]) for name in COLUMNS) == known[key].observation
        else:
            assert known[key].fate != "sent" or row["arrival [s]"] == ""
        if row[VOLTAGE] and key[1] < last[key[0]]:
            assert (float(row[VOLTAGE]),) == known[key].played, key


def test_a_line_with_any_other_byte_is_refused() -> None:
    line = encoded("A", 65_535, -0.125, 3.0)
    assert decoded(line) == ["A", "65535", "-0.125", "3"]
    for i in range(len(line) - 1):
        for other in range(256):
            if other != line[i]:
                assert decoded(line[:i] + bytes([other]) + line[i + 1 :]) is None
    page = (BENCH.parents[1] / "docs" / "hardware.md").read_text(encoding="utf-8")
    assert f"`{encoded('A', 17, 0.5).decode().strip()}` is an action of 0.5 for sample 17" in page
    assert decoded(b"") is decoded(b"*FFFF") is decoded(b"\xff \xff *0000") is None


@pytest.mark.parametrize("number", [0, 1, 65_535, 65_536, 100_000, 1_000_000])
def test_numbers_of_samples_are_found_again(number: int) -> None:
    for near in (number - 30_000, number, number + 30_000):
        assert unwrapped(number % 65_536, near) == number


@pytest.mark.parametrize("terminal", [False, True], ids=["tcp", "terminal"])
def test_an_episode_is_played_and_logged_as_the_board_knows_it(terminal: bool, tmp_path: Path) -> None:
    if terminal:
        needs_a_serial_port()
    with bench(terminal) as board:
        with connected(board, log=tmp_path / "log.csv", cost="voltage**2") as plant:
            seen, _ = plant.reset()
            after, reward, terminated, truncated, info = plant.step([6.0])
            assert seen.shape == after.shape == (3,)
            assert not terminated
            assert not truncated
            if info["missed"] == 0 and info["played"] is not None:
                assert reward == -(float(info["played"][0]) ** 2)
            info = played(plant, np.random.default_rng(0))
            assert info["sample"] >= 100
            assert info["stopped"] is None
            assert not board.is_on
            assert board.playing == (0.0,)
        rows = rows_of(tmp_path / "log.csv")
        assert_the_log_is_true(rows, board)
        assert [row["episode"] for row in rows].count("1") >= 101


def test_lost_late_and_damaged_lines_are_counted_and_nothing_is_lost_of_the_log(tmp_path: Path) -> None:
    soak(tmp_path, 400, lost=0.05, late=0.05, damaged=0.05)


@pytest.mark.long
def test_thousands_of_steps_with_lost_and_late_lines(tmp_path: Path) -> None:
    soak(tmp_path, 4_000, lost=0.01, late=0.01)


def soak(folder: Path, samples: int, **faults: float) -> None:
    with bench(**faults) as board:
        with connected(board, log=folder / "log.csv", horizon=samples) as plant:
            info = played(plant, np.random.default_rng(1))
        assert info["stopped"] is None
        counts = plant.counts
        rows = rows_of(folder / "log.csv")
        record = board.record[: int(rows[-1]["sample"]) + 1]
    assert_the_log_is_true(rows, board)
    assert counts.samples == len(rows)
    assert 0 < counts.late <= counts.missed
    assert counts.lost == sum(row[COLUMNS[0]] == "" for row in rows)
    assert counts.missed == sum(row["sent by"] == "watchdog" for row in rows)
    assert (
        counts.damaged == sum(one.fate == "damaged" for one in record[1:]) if faults.get("damaged") else True
    )
    # What did not come in time was answered by the safe action, unless this process paused meanwhile.
    blind = [i for i, one in enumerate(record[1:-1], 1) if one.fate != "sent"]
    answered = sum(rows[i]["sent by"] == "watchdog" for i in blind)
    assert answered >= len(blind) - counts.overtaken - counts.gaps - counts.read_late
    for row in rows:
        if row["sent by"] == "watchdog":
            assert float(row[f"sent {VOLTAGE}"]) == 0.0
    # The board never plays an action for longer than its watchdog allows.
    heard = 0
    for i, one in enumerate(record[:-1]):
        heard = i if any(fate == "played" for _, fate in one.actions) else heard
        assert i - heard <= WATCHDOG or one.played == (0.0,)


def test_the_log_is_what_fit_reads(tmp_path: Path) -> None:
    with bench(lost=0.02) as board, connected(board, log=tmp_path / "log.csv", horizon=200) as plant:
        played(plant, np.random.default_rng(2))
    rows = rows_of(tmp_path / "log.csv")
    log = read_log(
        tmp_path / "log.csv",
        observations=["position", "speed"],
        actions=["voltage"],
        episode="episode",
        time="time",
    )
    assert log.sample_time == pytest.approx(PERIOD)
    assert all("empty cells left out" in note for note in log.notes)
    seen = [row[COLUMNS[0]] != "" for row in rows]
    known = [row[VOLTAGE] != "" for row in rows]
    assert len(log) == sum(a and b and u for a, b, u in zip(seen, seen[1:], known, strict=False))


def test_a_cable_that_is_pulled_ends_the_episode_and_the_plant_is_safe() -> None:
    with bench() as board, connected(board, most_misses=4, horizon=10_000) as plant:
        plant.reset()
        for _ in range(5):
            plant.step([7.0])
        board.faults["lost"] = 1.0
        terminated = False
        missed = 0
        while not terminated:
            _, _, terminated, truncated, info = plant.step([7.0])
            missed += info["missed"]
            assert not truncated
        assert missed >= 5
        assert info["stopped"].startswith("5 observations in a row did not come in time")
        assert info["stopped"].endswith("the board did not confirm the stop")
        until(lambda: board.playing == (0.0,))
        with pytest.raises(BadEnvironmentError, match="call reset"):
            plant.step([7.0])
        with pytest.raises(BadEnvironmentError, match=r"was stopped: 5 observations .* call release\(\)"):
            plant.reset()
        board.faults["lost"] = 0.0
        plant.release()
        assert plant.stopped is None
        plant.reset()
        assert not plant.step([7.0])[2]


def test_an_emergency_stop_from_another_thread_is_heard_within_two_samples() -> None:
    with bench() as board, connected(board, horizon=10_000) as plant:
        plant.reset()
        pressed: list[int] = []

        def press() -> None:
            until(lambda: len(board.record) > 20 and board.playing == (5.0,))
            pressed.append(len(board.record))
            plant.emergency_stop("the button was pressed")

        thread = threading.Thread(target=press)
        thread.start()
        terminated = False
        while not terminated:
            _, _, terminated, _, info = plant.step([5.0])
        thread.join()
        assert info["stopped"] == "the button was pressed"
        assert board.playing == (0.0,)
        assert all(one.played == (0.0,) for one in board.record[pressed[0] + 3 :])
        with pytest.raises(BadEnvironmentError, match="the button was pressed"):
            plant.reset()
        plant.release()
        plant.reset()
        assert not plant.step([5.0])[2]


def test_the_stop_of_the_board_ends_the_episode() -> None:
    with bench() as board, connected(board, horizon=10_000) as plant:
        plant.reset()
        plant.step([5.0])
        board.press_stop()
        terminated = False
        while not terminated:
            _, _, terminated, _, info = plant.step([5.0])
        assert info["stopped"] == "the board reports that it was stopped"
        assert board.playing == (0.0,)


def test_an_observation_beyond_its_limit_stops_the_plant() -> None:
    with bench() as board, connected(board, horizon=10_000, emergency="abs(speed) > 10") as plant:
        plant.reset()
        terminated = False
        while not terminated:
            seen, _, terminated, _, info = plant.step([12.0])
        assert abs(seen[1]) > 10
        assert info["stopped"] == "abs(speed) > 10 holds"
        assert board.playing == (0.0,)


def test_an_end_condition_ends_the_episode_without_a_stop() -> None:
    with bench() as board, connected(board, horizon=10_000, end="speed > 5", reward="1 - ended") as plant:
        for _ in range(2):
            plant.reset()
            terminated = False
            rewards = []
            while not terminated:
                _, reward, terminated, _, info = plant.step([12.0])
                rewards.append(reward)
            assert info["stopped"] is None
            assert rewards == [1.0] * (len(rewards) - 1) + [0.0]
            assert board.playing == (0.0,)


def test_an_exception_in_the_loop_leaves_the_plant_safe() -> None:
    with bench() as board:
        plant = connected(board)
        plant.reset()
        with pytest.raises(ZeroDivisionError), plant:
            plant.step([5.0 / 0])
        assert not board.is_on
        assert board.playing == (0.0,)


def test_ctrl_c_within_a_step_leaves_the_plant_safe() -> None:
    with bench() as board:
        plant = connected(board, horizon=2_000)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs may ignore it
        try:
            threading.Timer(0.3, _thread.interrupt_main).start()
            with pytest.raises(KeyboardInterrupt):
                played(plant, np.random.default_rng(0))
        finally:
            signal.signal(signal.SIGINT, before)
        assert board.playing == (0.0,)
        assert not board.is_on
        plant.reset()  # it connects again
        plant.step([5.0])
        plant.close()
        plant.close()
        assert not board.is_on
        with pytest.raises(BadEnvironmentError, match="closed"):
            plant.reset()


SCRIPT = """
import sys
from math import inf
from spaql.plugins.hardware import Hardware

plant = Hardware(sys.argv[1], observations={obs!r}, actions={actions!r}, sample_time=0.01, safe_action=0.0,
                 horizon=100_000, most_misses=100, log=sys.argv[2])
plant.reset()
for _ in range({steps}):
    plant.step([5.0])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes end otherwise on this system")
def test_a_killed_process_leaves_the_plant_to_the_watchdog_and_the_log_complete(tmp_path: Path) -> None:
    with bench() as board:
        script = SCRIPT.format(obs=board.observations, actions=board.actions, steps=100_000)
        process = subprocess.Popen([sys.executable, "-c", script, board.port, str(tmp_path / "log.csv")])
        until(lambda: len(board.record) > 100 and board.playing == (5.0,), 60.0)
        process.kill()
        process.wait()
        killed = len(board.record)
        until(lambda: board.playing == (0.0,))
        until(lambda: len(board.record) > killed + 5)
        assert all(one.played == (0.0,) for one in board.record[killed + WATCHDOG + 1 : -1])
        rows = rows_of(tmp_path / "log.csv")
        assert_the_log_is_true(rows, board)
        assert len(rows) >= killed - 5  # what was on its way when it was killed
        with connected(board, log=tmp_path / "log.csv") as plant:  # and another process goes on
            played(plant, np.random.default_rng(0))
        assert {row["episode"] for row in rows_of(tmp_path / "log.csv")} == {"0", "1"}


def test_a_script_that_forgets_to_close_does_so_at_its_end(tmp_path: Path) -> None:
    with bench() as board:
        script = SCRIPT.format(obs=board.observations, actions=board.actions, steps=3)
        subprocess.run([sys.executable, "-c", script, board.port, str(tmp_path / "log.csv")], check=True)
        assert not board.is_on


def test_actions_are_kept_within_their_limits() -> None:
    with bench() as board, connected(board) as plant:
        plant.reset()
        for action in (100.0, -100.0, np.nan, np.inf):
            plant.step([action])
        assert plant.counts.limited == 4
        with pytest.raises(SettingError, match="has 2 numbers, and must have 1"):
            plant.step([1.0, 2.0])
        assert board.playing == (0.0,)
    assert {one.played for one in board.record} <= {(0.0,), (12.0,), (-12.0,)}


def test_a_list_of_actions_is_played_by_number(tmp_path: Path) -> None:
    with SimulatedBoard("CartPole-v1", sample_time=PERIOD, safe_action=0) as board:
        assert len(board.actions) == 2
        with connected(board, safe_action=0, log=tmp_path / "log.csv") as plant:
            assert plant.action_space.n == 2
            plant.reset()
            for action in (1, np.int64(0), 7, 0.5):
                plant.step(action)
            assert plant.counts.limited == 2
    assert {row["sent action"] for row in rows_of(tmp_path / "log.csv")} == {"1.0", "0.0", ""}


def test_another_board_than_the_declared_one_is_refused() -> None:
    with bench() as board:
        for settings, said in (
            ({"sample_time": 0.02}, "has a sample time in µs of 10000, and 20000 was declared"),
            ({"safe_action": 1.0}, r"has the safe action \(0.0,\), and \(1.0,\) was declared"),
        ):
            with connected(board, **settings) as plant, pytest.raises(SettingError, match=said):
                plant.reset()
        plant = Hardware(
            board.port,
            observations={"x": (0, 1)},
            actions={"u": (0, 1)},
            sample_time=PERIOD,
            safe_action=0,
            horizon=5,
        )
        with pytest.raises(SettingError, match="has observations 3, and 1 was declared"):
            plant.reset()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"safe_action": 13.0}, "safe_action is 13.0, and must be an action: voltage"),
        ({"safe_action": [0.0, 0.0]}, "safe_action is"),
        ({"observations": {"x": (1, 0)}}, "is empty"),
        ({"observations": {}}, "must be names with ranges"),
        ({"actions": {"u": (0, float("inf"))}}, "u is inf, and must be a number"),
        ({"cost": "angle"}, "uses 'angle'"),
        ({"cost": "1", "reward": "1"}, "either a cost or a reward"),
        ({"emergency": "voltage > 1"}, "uses 'voltage'"),
        ({"patience": 2}, "patience is 2, and must be at most 0.9"),
        ({"port": "tcp://nowhere"}, "is written tcp://HOST:PORT"),
    ],
)
def test_a_wrong_declaration_is_refused(settings: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"port": "tcp://127.0.0.1:1", "observations": {"x": (0, 1)}}
    given |= {"actions": {"voltage": (-12, 12)}, "sample_time": PERIOD, "safe_action": 0.0, "horizon": 5}
    with pytest.raises(SettingError, match=said):
        Hardware(**(given | settings)).reset()


def test_where_no_board_is_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"observations": {"x": (0, 1)}, "actions": {"u": (0, 1)}, "sample_time": PERIOD}
    given |= {"safe_action": 0.0, "horizon": 5}
    with pytest.raises(BadEnvironmentError, match=r"There is no board at tcp://127.0.0.1:1"):
        Hardware("tcp://127.0.0.1:1", **given).reset()
    monkeypatch.setitem(sys.modules, "serial", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'spaql\[serial\]'"):
        Hardware("COM99", **given).reset()


def test_a_port_that_is_not_there_is_refused() -> None:
    pytest.importorskip("serial")
    given: dict[str, Any] = {"observations": {"x": (0, 1)}, "actions": {"u": (0, 1)}, "sample_time": PERIOD}
    with pytest.raises(BadEnvironmentError, match="nothing-here cannot be opened"):
        Hardware("nothing-here", **given, safe_action=0.0, horizon=5).reset()


def test_a_log_is_continued_and_a_torn_row_is_dropped(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "log.csv"
    with bench() as board:
        for _ in range(2):
            with connected(board, log=log, horizon=5) as plant:
                played(plant, np.random.default_rng(0))
            whole = log.read_bytes()
            log.write_bytes(whole + b"9,17,0.0")
        with connected(board, log=log, horizon=5) as plant:
            played(plant, np.random.default_rng(0))
        assert log.read_bytes().startswith(whole)
        assert {row["episode"] for row in rows_of(log)} == {"0", "1", "2"}
        (tmp_path / "other.csv").write_text("x,y\n1,2\n", encoding="utf-8")
        with pytest.raises(SettingError, match="with other columns"):
            connected(board, log=tmp_path / "other.csv")
        assert (tmp_path / "other.csv").read_text(encoding="utf-8") == "x,y\n1,2\n"
        with pytest.raises(SettingError, match="two columns 'board'"):
            Hardware(
                board.port, observations={"board": (0, 1)}, actions={"u": (0, 1)}, sample_time=PERIOD,
                safe_action=0.0, horizon=5, log=tmp_path / "third.csv",
            )  # fmt: skip


def test_a_slow_controller_goes_on_with_the_newest_observation() -> None:
    with bench() as board, connected(board, horizon=10_000) as plant:
        plant.reset()
        plant.step([1.0])
        time.sleep(10 * PERIOD)
        _, _, terminated, _, info = plant.step([1.0])
        assert not terminated
        assert plant.counts.overtaken + plant.counts.gaps >= 5
        assert info["sample"] >= 10
        assert any(one.state == "W" for one in board.record[WATCHDOG:])


def test_there_is_one_plant_which_cannot_be_copied() -> None:
    problem = make_problem(MOTOR)
    policy = RandomPolicy(problem.states, problem.actions)
    with bench() as board, connected(board, horizon=20, cost="1") as plant:
        with pytest.raises(SettingError, match=r"There is one plant.*Hardware\.play"):
            spaql.evaluate(policy, plant, episodes=2)
        returns = plant.play(policy, episodes=2)
    assert returns.shape == (2,)
    assert (returns <= -1).all()


def test_the_c_side_speaks_the_protocol(tmp_path: Path) -> None:
    needs_a_serial_port()
    if not shutil.which("cc"):
        pytest.skip("there is no cc")
    flags = ("-std=c99", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror", "-Wconversion")
    subprocess.run(["cc", *flags, "-o", tmp_path / "motor", BENCH / "motor.c", "-lm"], check=True)
    master, slave = os.openpty()
    given: dict[str, Any] = {"sample_time": 0.01, "safe_action": 0.0, "horizon": 100, "most_misses": 100}
    given |= {"observations": {"angle": (-1e6, 1e6), "speed": (-100, 100)}, "actions": {"voltage": (-6, 6)}}
    with subprocess.Popen([tmp_path / "motor"], stdin=master, stdout=master) as process:
        try:
            with Hardware(os.ttyname(slave), **given, log=tmp_path / "log.csv") as plant:
                played(plant, np.random.default_rng(0))
                plant.reset()
                time.sleep(0.1)
                plant.step([1.0])  # its watchdog has played the safe action meanwhile
                plant.emergency_stop()
                assert plant.stopped == "emergency_stop() was called"
                plant.release()
                plant.reset()
                assert not plant.step([1.0])[2]
        finally:
            process.kill()
    os.close(master)
    os.close(slave)
    rows = rows_of(tmp_path / "log.csv")
    assert {row["board"] for row in rows} >= {"R", "W"}
    checked = 0
    for row, after in pairwise(rows):  # the equations of motor.c, with six decimals
        if row["episode"] == after["episode"] and row["speed"] and after["speed"] and row["voltage"]:
            speed = float(row["speed"])
            voltage = float(row["voltage"])
            assert float(after["speed"]) == pytest.approx(speed + 0.1 * (2.5 * voltage - speed), abs=1e-4)
            checked += 1
    assert checked > 90


ARDUINO = """
#include <math.h>
#include <stdint.h>
#define HIGH 1
#define LOW 0
#define OUTPUT 1
#define INPUT_PULLUP 2
#define constrain(x, a, b) ((x) < (a) ? (a) : (x) > (b) ? (b) : (x))
enum {A0, A1};
int analogRead(int), digitalRead(int);
unsigned long micros();
void pinMode(int, int), digitalWrite(int, int), analogWrite(int, int);
struct Port { void begin(long), write(const char *); int available(), read(); };
extern Port Serial;
"""
"""What the Arduino IDE puts before a sketch, as far as this one needs it."""


def test_the_sketch_compiles_for_an_uno(tmp_path: Path) -> None:
    if not shutil.which("avr-g++"):
        pytest.skip("there is no avr-g++")
    sketch = (BENCH / "bench.ino").read_text(encoding="utf-8")
    (tmp_path / "bench.cpp").write_text(ARDUINO + sketch, encoding="utf-8")
    flags = ("-mmcu=atmega328p", "-Os", "-Wall", "-Wextra", "-Werror", f"-I{BENCH}", "-c")
    subprocess.run(["avr-g++", *flags, "bench.cpp"], cwd=tmp_path, check=True)


@pytest.mark.slow
def test_the_tutorial_identifies_fits_runs_and_refits(tmp_path: Path) -> None:
    """Its files and commands as they are written, with a faster plant, fewer episodes and less effort."""
    page = (BENCH.parents[1] / "docs" / "hardware.md").read_text(encoding="utf-8")
    with SimulatedBoard(MOTOR, sample_time=PERIOD, safe_action=0.0) as board:
        for name, code in re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
            for long, short in (
                ("tcp://127.0.0.1:5025", board.port),
                ("sample_time=0.02", f"sample_time={PERIOD}, most_misses=100"),
                ("range(20)", "range(8)"),
                ("episodes=10", "episodes=2"),
            ):
                code = code.replace(long, short)
            (tmp_path / name).write_text(code, encoding="utf-8")
        shown = "".join(re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
        commands = re.findall(r"^\$ ((?:.*\\\n)*.*)", shown, re.MULTILINE)
        assert [command.split()[1] for command in commands] == [
            "simulated_board.py", "identify.py", "fit", "show", "draw", "run.py", "fit"
        ]  # fmt: skip
        outputs = {}
        for command in commands[1:]:
            words = shlex.split(command.replace("\\\n", " "))
            if words[1] == "fit":
                words += ["--effort", "0.02", "--anyway"]
            start = [sys.executable] if words[0] == "python" else [sys.executable, "-m", "spaql"]
            done = subprocess.run([*start, *words[1:]], cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            outputs[command] = done.stdout
    first, again = (text for command, text in outputs.items() if " fit " in command)
    assert "predicted" in first
    assert "predicted" in again
    logged = rows_of(tmp_path / "identify.csv")
    controlled = rows_of(tmp_path / "run.csv")
    assert_the_log_is_true(logged, board)
    assert {row["episode"] for row in controlled} == {"0", "1"}
    # The same plant, without a line and its losses. A busy machine logs too little, and the verdict says so.
    fitted = spaql.evaluate(tmp_path / "runs" / "motor", MOTOR, episodes=20)
    logged_return = float(re.search(r"logged +(-[\d.,]+)", first)[1].replace(",", ""))  # type: ignore[index]
    doubted = any(verdict in first for verdict in ("doubtful", "not supported by the data"))
    assert fitted.mean > logged_return or doubted
