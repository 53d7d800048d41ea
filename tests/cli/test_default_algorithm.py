"""Without --algo, `spaql train` takes the algorithm that suits the plant, and says so."""

import json
from pathlib import Path

from click.testing import CliRunner

import spaql
from spaql.cli import main
from spaql.cli.default_algorithm import default_algorithm, recommended

SAID = "The plant is compiled and declares set-points: training with --algo treesearch"


def test_a_compiled_plant_with_set_points_is_trained_with_treesearch(tmp_path: Path) -> None:
    words = ["train", "spaql/DCMotor-v0", "--steps", "3000", "--seed", "0", "--json"]
    done = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    assert done.stderr.count(SAID) == 1
    assert "--algo plantree" not in done.stderr
    assert json.loads(done.stdout)["algorithm"] == "treesearch"


def test_what_suits_a_problem() -> None:
    assert default_algorithm(spaql.make_problem("spaql/Oven-v0")) == "treesearch"
    assert default_algorithm(spaql.make_problem("spaql/Oven-v0", compiled=False)) == "plantree"
    assert default_algorithm(spaql.make_problem("Pendulum-v1")) == "plantree"


def test_the_advice_does_not_contradict_the_choice() -> None:
    oven = spaql.make_problem("spaql/Oven-v0")
    pendulum = spaql.make_problem("Pendulum-v1")
    assert recommended("treesearch", 5_000, oven) == ""
    assert "--algo treesearch" in recommended("plantree", 5_000, oven)
    assert "--algo plantree" in recommended("treesearch", 5_000, pendulum)
    assert recommended("plantree", 5_000, pendulum) == ""
    assert "--algo treesearch" in recommended("plantree", 200_000, pendulum)
