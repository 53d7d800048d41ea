"""Logs: files to transitions, and messages that say where a log is wrong."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from spaql import SettingError
from spaql.problems.from_log import problem_from_log
from spaql.problems.log import Log, read_log


def written(folder: Path, text: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def read(path: Path | list[Path], **more: str) -> Log:
    return read_log(path, observations=["x", "v"], actions=["u"], **more)


GOOD = "run,t,x [m],v [m/s],u\na,0,0,1,0.5\na,1,1,2,-0.5\na,2,3,4,\nb,0,9,9,1\nb,1,8,8,1\n"


def test_rows_are_transitions_within_episodes(tmp_path: Path) -> None:
    log = read(written(tmp_path, GOOD), episode="run", time="t")
    assert log.observations == ("x [m]", "v [m/s]")
    assert log.states.tolist() == [[0, 1], [1, 2], [9, 9]]
    assert log.nexts.tolist() == [[1, 2], [3, 4], [8, 8]]
    assert log.taken.ravel().tolist() == [0.5, -0.5, 1]
    assert log.first.tolist() == [True, False, True]
    assert (log.rows, log.sample_time, log.notes) == (5, 1.0, ())
    assert log.place(2).endswith("log.csv, row 5")


def test_each_file_is_an_episode_and_separators_are_found(tmp_path: Path) -> None:
    one = written(tmp_path, "\ufeffx;v;u\n1;2;3\n4;5;6\n", "one.csv")
    two = written(tmp_path, "x\tv\tu\n7\t8\t9\n7\t8\t9\n7\t8\t9\n", "two.csv")
    log = read([one, two])
    assert log.first.tolist() == [True, True, False]
    assert log.places.tolist() == [[0, 2], [1, 2], [1, 3]]


def test_parquet_is_read_as_csv_is(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"run": ["a", "a", "a", "b", "b"], "t": [0, 1, 2, 0, 1], "x [m]": [0, 1, 3, 9, 8]}
    columns |= {"v [m/s]": [1, 2, 4, 9, 8], "u": [0.5, -0.5, None, 1, 1]}
    parquet.write_table(pa.table(columns), tmp_path / "log.parquet")
    one = read(written(tmp_path, GOOD), episode="run", time="t")
    other = read(tmp_path / "log.parquet", episode="run", time="t")
    for name in ("states", "nexts", "taken", "first"):
        assert np.array_equal(getattr(one, name), getattr(other, name))


def test_missing_rows_cut_an_episode_and_are_reported(tmp_path: Path) -> None:
    times = [0, 0.1, 0.2, 0.5, 0.6, 0.7, 0.812, 0.9]
    rows = "".join(f"{t},{i},0,0\n" for i, t in enumerate(times))
    log = read(written(tmp_path, "t,x,v,u\n" + rows), time="t")
    assert log.states[:, 0].tolist() == [0, 1, 3, 4, 5, 6]
    assert log.first.tolist() == [True, False, True, False, False, False]
    gap, uneven = log.notes
    assert "1 gap" in gap
    assert "row 4" in gap
    assert "2 rows unevenly" in uneven


def test_empty_cells_cut_an_episode_and_are_reported(tmp_path: Path) -> None:
    log = read(written(tmp_path, "x,v,u\n0,0,0\n1,1,0\n2,,0\n3,3,0\n4,4,nan\n5,5,0\n6,6,0\n"))
    assert log.states[:, 0].tolist() == [0, 3, 5]
    assert log.nexts[:, 0].tolist() == [1, 4, 6]
    assert log.first.tolist() == [True, True, True]
    (note,) = log.notes
    assert "2 rows with empty cells" in note
    assert "row 4, column 'v'" in note


WRONG = {
    "x,v,u\n1,2,3\n1,oops,3\n": r"log.csv, row 3, column 'v' is 'oops'",
    "x,v,u\n1,2,3\n1,inf,3\n": r"row 3, column 'v' is 'inf'",
    "x,v,u\n1,2,3\n1,1_0,3\n": r"row 3, column 'v' is '1_0', and must be a finite number",
    "x,v,u\n1,2,3\n1,\uff11\uff12,3\n": r"row 3, column 'v' is '\uff11\uff12', and must be",
    'x,v,u\n1,2,3\n1,"2,3\n1,2,3\n': r"row 3 is no CSV: unexpected end of data",
    'x,"v,u\n1,2,3\n': r"row 1 is no CSV",
    "x,v,u\n1,2,3\n1,2\n": r"row 3 has 2 cells, and the header has 3",
    "x,w,u\n1,2,3\n": r"log.csv has no column 'v'",
    "x,v,v,u\n1,2,3,4\n": r"two columns 'v'",
    "": r"is empty",
    "x,v,u\n1,2,3\n": r"no two successive rows",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_message_names_file_row_and_column(text: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=WRONG[text]):
        read(written(tmp_path, text))


def test_bytes_that_are_no_text_are_refused_wherever_they_are(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"x,v,u\n" + b"1,2,3\n" * 10_000 + b"1,\xff,3\n")
    with pytest.raises(SettingError, match=r"log.csv cannot be read as text"):
        read(path)


def test_reading_takes_little_more_room_than_the_numbers(tmp_path: Path) -> None:
    rows = 5_000
    lines = "".join(f"{i // 100},{i / 7:.9g},{i / 3:.9g},{i / 11:.9g}\n" for i in range(rows))
    path = written(tmp_path, "run,x,v,u\n" + lines)
    read(path, episode="run")  # imports
    tracemalloc.start()
    read(path, episode="run")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 200 * rows  # as objects of Python, a row takes twice as much


def test_times_and_episodes_must_be_in_order(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"row 4, column 't' is not later"):
        read(written(tmp_path, "t,x,v,u\n0,1,1,1\n1,1,1,1\n1,1,1,1\n"), time="t")
    with pytest.raises(SettingError, match=r"row 4 goes on with the episode 'a'"):
        read(written(tmp_path, "r,x,v,u\na,1,1,1\nb,1,1,1\na,1,1,1\n"), episode="r")
    with pytest.raises(SettingError, match="There is no log"):
        read(tmp_path / "nothing.csv")


def columns(**more: list[float]) -> dict[str, list[float]]:
    return {"x": [0, 1, 2, 3, 4, 5], "v": [1, 1, 1, 1, 1, 1], "u": [0, 1, 0, 1, 0, 0]} | more


def log_of(**more: list[float]) -> Log:
    return read_log(columns(**more), observations=["x", "v"], actions=["u"])


def test_costs_and_ends_are_evaluated_exactly() -> None:
    found = problem_from_log(log_of(), cost="x**2 + 10*u + next_x - 100*ended", end="x > 2.5", horizon=9)
    x = np.arange(5.0)
    u = np.array([0, 1, 0, 1, 0.0])
    ended = np.array([0, 0, 1, 1, 1.0])
    assert found.rewards.tolist() == (-(x**2 + 10 * u + x + 1 - 100 * ended)).tolist()
    assert found.ended.tolist() == [False, False, True, True, True]
    assert found.begins.tolist() == [0, 3, 4]
    assert "end condition holds 2 times within" in found.notes[0]
    assert found.problem.actions.space.n == 2
    assert found.problem.env is None


def test_long_episodes_count_as_several() -> None:
    found = problem_from_log(log_of(), reward="x", horizon=2, action_range=[-1, 1])
    assert found.begins.tolist() == [0, 2, 4]
    assert "2 more begin" in found.notes[0]
    assert found.problem.horizon == 2
    assert problem_from_log(log_of(), reward="x").problem.horizon == 5


def test_set_points_stay_in_the_model() -> None:
    log = log_of(v=[1, 1, 1, 7, 7, 7])
    found = problem_from_log(log, cost="abs(x - v)", setpoints={"x": "v"})
    assert found.nexts[:, 1].tolist() == [1, 1, 1, 7, 7]
    assert found.problem.setpoints == {"x": "v"}


REFUSED = {
    "range": ({"cost": "x", "action_range": [-1, 0.5]}, "row 2, column 'u' is 1, outside the action range"),
    "order": ({"cost": "x", "action_range": [1, -1]}, "action_range is"),
    "neither": ({}, "either a cost or a reward"),
    "both": ({"cost": "x", "reward": "x"}, "either a cost or a reward"),
    "infinite": ({"cost": "1 / (x - 1)"}, "row 2, and must be finite"),
    "action in end": ({"cost": "x", "end": "u > 1"}, "end condition"),
    "set-point": ({"cost": "x", "setpoints": {"x": "w"}}, "no column 'w'"),
    "horizon": ({"cost": "x", "horizon": 0}, "horizon is 0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_the_log_is_refused(name: str) -> None:
    given, message = REFUSED[name]
    with pytest.raises(SettingError, match=message):
        problem_from_log(log_of(), **given)


def test_a_list_needs_every_action_and_other_actions_a_range() -> None:
    with pytest.raises(SettingError, match="never has 1"):
        problem_from_log(log_of(u=[0, 2, 0, 2, 0, 0]), cost="x")
    with pytest.raises(SettingError, match="give the range of the action"):
        problem_from_log(log_of(u=[0, 0.5, 0, 1, 0, 0]), cost="x")


def test_a_controller_is_limited_to_what_the_log_has_tried() -> None:
    log = log_of(u=[-0.1, 0.3, 0, 0.3, 0, 0])
    found = problem_from_log(log, cost="x", action_range=[-1, 1])
    low, high = (float(end[0]) for end in (found.problem.actions.space.low, found.problem.actions.space.high))
    assert -0.1 <= low < -0.0999  # single precision must not round it beyond
    assert 0.2999 < high <= 0.3
    assert found.notes == ("u is limited to -0.1 to 0.3, which the log has tried, of -1 to 1",)
    wide = problem_from_log(log, cost="x", action_range=[-1, 1], extrapolate=True)
    assert (wide.problem.actions.space.low, wide.problem.actions.space.high, wide.notes) == (-1, 1, ())
    with pytest.raises(SettingError, match="needs the range of the action"):
        problem_from_log(log, cost="x", extrapolate=True)
    with pytest.raises(SettingError, match=r"'u' is 0\.5 in every row"):
        problem_from_log(log_of(u=[0.5] * 6), cost="x", action_range=[-1, 1])


def test_there_is_no_environment_to_make() -> None:
    problem = problem_from_log(log_of(), cost="x").problem
    assert problem.runs_on == "no environment: it was made from a log"
    with pytest.raises(RuntimeError, match="fitted to a log"):
        problem.make()


def test_constraints_are_priced_and_counted_after_the_step() -> None:
    plain = problem_from_log(log_of(), cost="x", horizon=2)
    found = problem_from_log(log_of(), cost="x", horizon=2, constraints=["x < 2.5", ("u < 0.5", 10.0)])
    assert (plain.rewards - found.rewards).tolist() == [0.0, 10.0, 0.0, 10.0, 0.0]
    assert found.begins.tolist() == [0, 2, 4]
    assert found.notes[-2:] == (
        "the constraint x < 2.5 is broken in 2 of 3 episodes of the log",
        "the constraint u < 0.5 (10 a step) is broken in 2 of 3 episodes of the log",
    )
    assert found.problem.log is not None
    assert found.problem.log["constraints"] == [["x < 2.5", None], ["u < 0.5", 10.0]]
    assert plain.problem.log is not None
    assert "constraints" not in plain.problem.log
    with pytest.raises(SettingError, match="constraint"):
        problem_from_log(log_of(), cost="x", constraints=["x.real"])


def log_of_runs(parts: list[list[list[float]]]) -> Log:
    columns = {
        "run": [i for i, part in enumerate(parts) for _ in part],
        "x": [row[0] for part in parts for row in part],
        "u": [row[1] for part in parts for row in part],
    }
    return read_log(columns, observations=["x"], actions=["u"], episode="run")


def test_copied_episodes_are_counted_once() -> None:
    rng = np.random.default_rng(0)
    parts = [rng.uniform(-1, 1, (41, 2)).tolist() for _ in range(4)]
    log = log_of_runs(parts * 20)
    assert log.states.tolist() == log_of_runs(parts).states.tolist()
    assert log.first.tolist() == log_of_runs(parts).first.tolist()
    assert log.notes == ("76 of 80 episodes are copies: counted once; the first copy is at the log, row 165",)
    repeated = [[[x + 1e-3 * rng.normal(), u] for x, u in part] for part in parts]
    assert log_of_runs(parts + repeated).notes == ()


def test_a_plant_that_rests_repeats_itself_without_being_copied() -> None:
    assert log_of_runs([[[0.0, 0.0]] * 5, [[0.0, 0.0]] * 5]).notes == ()
