"""Copies in a log: they are no further evidence, and are counted once."""

from typing import Any

import numpy as np
import pytest

from spaql.problems.log import Log, read_log

Rows = list[list[float]]


def episode(rng: np.random.Generator, steps: int = 40) -> Rows:
    """Return rows of x and u; the last one has no action."""
    rows = []
    x = rng.uniform(-1, 1)
    for _ in range(steps):
        u = rng.uniform(-1, 1)
        rows.append([x, u])
        x = 0.9 * x + 0.2 * u
    return [*rows, [x, np.nan]]


def episodes(count: int, steps: int = 40) -> list[Rows]:
    rng = np.random.default_rng(0)
    return [episode(rng, steps) for _ in range(count)]


def log_of(parts: list[Rows]) -> Log:
    columns: dict[str, Any] = {"run": [i for i, part in enumerate(parts) for _ in part]}
    columns |= {
        "x": [row[0] for part in parts for row in part],
        "u": [row[1] for part in parts for row in part],
    }
    return read_log(columns, observations=["x"], actions=["u"], episode="run")


def moved(part: Rows, by: float) -> Rows:
    rng = np.random.default_rng(1)
    return [[x + by * rng.normal(), u] for x, u in part]


@pytest.mark.parametrize("by", [0.0, 1e-6])
def test_copied_episodes_are_counted_once(by: float) -> None:
    parts = episodes(4)
    log = log_of(parts + [moved(part, by) for _ in range(19) for part in parts])
    assert log.states.tolist() == log_of(parts).states.tolist()
    assert log.first.sum() == 4
    assert log.notes == ("76 of 80 episodes are copies: counted once; the first copy is at the log, row 165",)


def test_repeated_experiments_with_other_noise_are_no_copies() -> None:
    parts = episodes(4)
    log = log_of(parts + [moved(part, 1e-3) for part in parts])
    assert (log.first.sum(), log.notes) == (8, ())


def test_recordings_that_overlap_are_joined_once() -> None:
    whole, other = episodes(2, steps=100)
    log = log_of([whole[:60], other, whole[35:]])
    assert log.notes == ("24 of 224 steps are copies: counted once; "
                         "the first copy is at the log, row 162",)  # fmt: skip
    assert len(log) == 59 + 100 + 65 - 24
    assert log.first.sum() == 3


def test_short_episodes_are_copies_as_a_whole() -> None:
    parts = episodes(30, steps=3)
    assert log_of(parts).notes == ()
    assert "5 of 35 episodes are copies" in log_of(parts + parts[10:15]).notes[0]


def test_a_plant_that_rests_repeats_itself_without_being_copied() -> None:
    """Rows of a coarse sensor at rest are the same in every episode, and are evidence that it rests."""
    parts = [[*part[:-1], *([[0.0, 0.0]] * 30), [0.0, np.nan]] for part in episodes(3)]
    assert log_of(parts).notes == ()
    copied = log_of(parts + parts)  # but those that follow a copy belong to it
    assert (copied.first.sum(), copied.notes[0][:27]) == (3, "3 of 6 episodes are copies:")


def test_the_order_of_columns_does_not_matter() -> None:
    parts = episodes(3)
    log = log_of(parts + [[[x, u] for x, u in part] for part in parts[:2]])
    assert (log.first.sum(), len(log)) == (3, 120)
