"""Maps of what is proven."""

from pathlib import Path

import numpy as np
import pytest

import spaql
from spaql.figures import compute_verdict, draw, read, save_as
from spaql.figures.drawing import write
from spaql.verify import Counterexample, Statement, Verdict

pytest.importorskip("matplotlib")


def verdict(shape: tuple[int, ...] = (4, 8)) -> Verdict:
    """Return a verdict whose lowest first number is refuted, and whose highest is undecided."""
    status = np.zeros(shape, np.int8)
    status[0] = 1
    status[-1] = 2
    names = ("x", "y", "z")[: len(shape)]
    box = dict.fromkeys(names, (-1.0, 1.0))
    return Verdict(
        plant="Plant-v0",
        statement=Statement(starts=box, allowed=box),
        names=names,
        left_out=(),
        low=np.full(len(shape), -1.0),
        high=np.full(len(shape), 1.0),
        proven=0.5,
        refuted=0.25,
        undecided=0.25,
        counterexample=Counterexample((-0.9, 0.2, 0.0)[: len(shape)], 3, (2.0, 0.0, 0.0), "x leaves"),
        longest=None,
        seconds=1.0,
        finished=True,
        status=status,
        times=np.where(status == 0, 5, -1).astype(np.int32),
    )


def test_rows_go_up_and_columns_to_the_right() -> None:
    record = compute_verdict(verdict())
    assert (record.x_name, record.y_name) == ("x", "y")
    assert np.array(record.status).shape == (8, 4)
    assert all(row == (1, 0, 0, 2) for row in record.status)
    assert all(row == (-1, 5, 5, -1) for row in record.steps)
    assert record.start == (-0.9, 0.2)
    swapped = compute_verdict(verdict(), (1, 0))
    assert np.array_equal(np.array(swapped.status), np.array(record.status).T)
    assert "z 0" in compute_verdict(verdict((4, 4, 4))).note


def test_of_many_cells_the_worst_is_drawn() -> None:
    record = compute_verdict(verdict((2048, 1024)))
    assert np.array(record.status).shape == (512, 512)
    assert [row[0] for row in record.status] == [1] * 512
    assert np.mean(np.array(record.status) == 1) == pytest.approx(1 / 512)


def test_a_record_is_enough_to_draw(tmp_path: Path) -> None:
    record = compute_verdict(verdict())
    write(record, tmp_path / "map.json")
    assert read(tmp_path / "map.json") == record
    save_as(record, tmp_path / "map.svg")
    drawn = (tmp_path / "map.svg").read_text()
    for word in (
        "proven 50.00 %",
        "refuted 25.00 %",
        "undecided 25.00 %",
        "counterexample",
        "steps that suffice",
    ):
        assert word in drawn
    figure = draw(record)
    assert len(figure.axes) == 3


@pytest.mark.parametrize(
    ("shape", "axes"), [((4,), (0, 1)), ((1, 1), (0, 1)), ((4, 4), (0, 0)), ((4, 4), (0, 2))]
)
def test_maps_that_cannot_be_are_refused(shape: tuple[int, ...], axes: tuple[int, int]) -> None:
    with pytest.raises(spaql.SettingError, match="map"):
        compute_verdict(verdict(shape), axes)
