"""`spaql zoo`: what it lists and writes, and that other commands take what it writes."""

import json
from pathlib import Path

from click.testing import CliRunner

from spaql import zoo
from spaql.cli import main


def run(*words: str) -> str:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_list_has_a_row_for_each_controller() -> None:
    lines = run("zoo").splitlines()
    assert lines[0].split()[:3] == ["name", "problem", "return"]
    assert [line.split()[0] for line in lines[1:]] == zoo.names()


def test_the_list_as_json_has_all_figures() -> None:
    rows = json.loads(run("zoo", "--json"))["controllers"]
    assert [row["name"] for row in rows] == zoo.names()
    oven = next(row for row in rows if row["name"] == "oven-treesearch")
    assert oven["problem"] == "spaql/Oven-v0"
    assert {one["name"] for one in oven["beside"]} >= {"pid", "lqr"}


def test_what_it_writes_is_a_run_for_other_commands(tmp_path: Path) -> None:
    file = str(tmp_path / "cart.spaql")
    assert json.loads(run("zoo", "cartpole-treesearch", "--out", file, "--json"))["file"] == file
    assert Path(file).read_bytes() == zoo.content("cartpole-treesearch")
    assert "# learned by treesearch, seed 0, 1,000,000 steps" in run("show", file)
    assert json.loads(run("evaluate", file, "--episodes", "100", "--json"))["mean"] > 400
    out = tmp_path / "firmware"
    run("export", file, "--to", "c", "--points", "1000", "--out", str(out))
    assert (out / "controller.c").exists()


def test_a_controller_with_memory_is_written_as_well(tmp_path: Path) -> None:
    file = str(tmp_path / "oven.spaql")
    shown = run("zoo", "oven-treesearch", "--out", file)
    assert "spaql/Oven-v0, treesearch, seed 0" in shown
    assert "a controller with memory" in run("show", file, "--digits", "3")
    assert json.loads(run("evaluate", file, "--episodes", "10", "--json"))["episodes"] == 10


def test_a_name_that_is_not_there_is_refused_with_the_nearest(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["zoo", "oven-treesarch", "--out", str(tmp_path / "x.spaql")])
    assert done.exit_code == 1
    assert "did you mean oven-treesearch?" in done.stderr
    assert not list(tmp_path.iterdir())
