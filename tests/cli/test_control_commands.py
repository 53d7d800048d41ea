"""`spaql evaluate` and `spaql draw response` on a plant with set-points, run in process."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import spaql
from spaql.cli import main
from spaql.figures import compute_response, draw


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("oven") / "run"
    words = ["spaql/Oven-v0", "--algo", "treesearch", "--steps", "20000", "--seed", "0", "--quiet"]
    done = CliRunner().invoke(main, ["train", *words, "--out", str(folder)])
    assert done.exit_code == 0
    assert " in the search and " in done.output
    return str(folder)


def command(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == code, result.output
    return result


def test_the_closed_loop_is_measured(run: str) -> None:
    text = command("evaluate", run, "--episodes", "10").stdout
    assert "temperature [°C] to set-point [°C]" in text
    for word in (
        "rise",
        "overshoot",
        "settling",
        "steady-state error",
        "IAE",
        "movement",
        "reversals",
        "at a limit",
    ):
        assert word in text
    plain = json.loads(command("evaluate", run, "--episodes", "10", "--json").stdout)
    assert plain["control"]["tracking"][0]["name"] == "temperature [°C]"
    assert plain["control"]["actuators"][0]["name"] == "heat"
    shaken = json.loads(command("evaluate", run, "--episodes", "10", "--perturbed", "--json").stdout)
    assert (shaken["condition"], plain["condition"]) == ("perturbed", "nominal")
    assert shaken["designed_for"] == plain["designed_for"] == "perturbed"
    assert shaken["mean"] != plain["mean"]


def test_classical_controllers_stand_beside_it(run: str) -> None:
    words = ("evaluate", run, "--episodes", "10", "--beside", "pid,lqr", "--steps", "20000")
    data = json.loads(command(*words, "--json").stdout)
    assert [one["name"] for one in data["beside"]] == ["pid", "lqr"]
    assert all(one["steps"] <= 20_000 for one in data["beside"])
    assert data["beside"][0]["difference"] == pytest.approx(data["beside"][0]["mean"] - data["mean"])
    text = command(*words).stdout
    assert "tuned with" in text
    assert text.index("on perturbed plants") < text.index("on the nominal plant")  # it was designed for these
    assert data["condition"] == "perturbed"
    (nominal,) = data["other_conditions"]
    assert nominal["condition"] == "nominal"
    alone = json.loads(command("evaluate", run, "--episodes", "10", "--json").stdout)
    assert nominal["mean"] == alone["mean"] != data["mean"]
    assert [one["name"] for one in nominal["beside"]] == ["pid", "lqr"]
    assert data["verdict"] in " ".join(text.split())
    assert "did you mean pid" in command("evaluate", run, "--beside", "pdi", code=2).output
    assert "give --beside" in command("evaluate", run, "--steps", "10", code=1).output


@pytest.mark.slow
def test_a_response_is_drawn(run: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "response.svg"
    command("draw", run, "response", "--beside", "pid,lqr", "--out", str(out))
    text = out.read_text()
    for word in ("temperature", "heat", "pid", "lqr", "load on heat", "time [min]"):
        assert word in text
    assert "leave out --beside" in command("draw", run, "tree", "--beside", "pid", code=2).output
    record = compute_response(run)
    assert record.controllers == ("this",)
    assert len(draw(record).axes) == 2


def test_a_response_needs_set_points(tmp_path: Path) -> None:
    problem = spaql.make_problem("cartpole200")
    tree = spaql.controller_of(spaql.SPAQL(problem, seed=0))
    spaql.Design(tree, problem).save(tmp_path / "run")
    assert "no set-points to follow" in command("draw", str(tmp_path / "run"), "response", code=1).output
