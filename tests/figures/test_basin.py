"""Maps of the starts that succeed."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import spaql
from spaql.evaluation import Bench, stress
from spaql.figures import BasinRecord, compute_basin, draw, read, save_as
from spaql.figures.drawing import write

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def agent() -> spaql.Agent:
    return spaql.SPAQL("cartpole200", rollouts=5, seed=1).learn(iterations=60, progress_bar=False)


@pytest.fixture(scope="module")
def record(agent: spaql.Agent) -> BasinRecord:
    return compute_basin(agent, side=6)


def test_each_box_is_an_episode_from_its_middle(agent: spaql.Agent, record: BasinRecord) -> None:
    limit = math.radians(6)
    assert (record.x_name, record.y_name) == ("pole angle [rad]", "pole speed [rad/s]")
    assert (record.x_range, record.y_range) == ((-limit, limit), (-1.0, 1.0))
    for row, column in ((0, 0), (1, 4), (5, 2)):
        start = [0.0, 0.0, limit * ((column + 0.5) / 3 - 1), (row + 0.5) / 3 - 1]
        alone = stress(agent, starts=[start])
        assert record.returns[row][column] == alone.returns[0]
        assert record.success[row][column] == alone.success[0]
    assert f"{100 * np.mean(record.success):.0f} % of 36" in record.title
    assert "cart position 0 m, cart speed 0 m/s" in record.note
    assert record.begins == pytest.approx((-0.05, 0.05, -0.05, 0.05), abs=0.002)


def test_a_record_is_kept_and_drawn_again(record: BasinRecord, tmp_path: Path) -> None:
    write(record, tmp_path / "basin.json")
    assert read(tmp_path / "basin.json") == record
    assert json.loads((tmp_path / "basin.json").read_text())["kind"] == "basin"
    save_as(record, tmp_path / "one.svg")
    save_as(record, tmp_path / "basin.png")
    save_as(record, tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert (tmp_path / "basin.png").read_bytes().startswith(b"\x89PNG")


def test_failures_are_drawn_where_they_are(record: BasinRecord) -> None:
    (image,) = draw(record).axes[0].get_images()
    np.testing.assert_array_equal(image.get_array(), np.array(record.success))
    fails, succeeds = image.to_rgba(np.array([0, 1]))[:, :3]
    brightness = np.array([0.299, 0.587, 0.114])
    assert succeeds @ brightness - fails @ brightness > 0.25  # told apart without colours too


def test_axes_that_are_none(agent: spaql.Agent) -> None:
    for axes in ((0, 0), (0, 4)):
        with pytest.raises(spaql.SettingError, match="two different numbers"):
            compute_basin(agent, axes=axes)
    with pytest.raises(spaql.SettingError, match="two different numbers"):
        compute_basin(agent, bench=Bench(region={"x": (0.0, 1.0)}))
