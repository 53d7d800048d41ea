"""`spaql train --tries`, as a user runs it."""

import csv
import filecmp
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import spaql
from spaql.cli import main
from spaql.simulate.seeds import try_seeds

TREE = ("train", "cartpole200", "--steps", "300", "--effort", "0.02", "--seed", "4")
TABLE = ("train", "cartpole200", "--algo", "spaql", "--iterations", "3", "--rollouts", "2", "--seed", "4")
FEW = ("--selection-episodes", "6")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def spaql_command(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == code, result.output
    return result


def assert_same(one: Path, other: Path) -> None:
    names = sorted(str(path.relative_to(one)) for path in one.rglob("*") if path.is_file())
    assert names == sorted(str(path.relative_to(other)) for path in other.rglob("*") if path.is_file())
    assert filecmp.cmpfiles(one, other, names, shallow=False)[1:] == ([], [])


@pytest.mark.long
def test_the_same_files_and_figures_for_any_number_of_workers() -> None:
    done = [
        json.loads(spaql_command(*TREE, *FEW, "--tries", "3", "--workers", n, "--out", n, "--json").stdout)
        for n in ("1", "2")
    ]
    assert {**done[0], "run": ""} == {**done[1], "run": ""}
    assert_same(Path("1"), Path("2"))

    data = done[0]
    assert [one["seed"] for one in data["tries"]] == try_seeds(4, 3)
    assert data["training_steps"] == data["training_interactions"] == 900
    assert data["selection_interactions"] == sum(one["selection_steps"] for one in data["tries"])
    parts = ("training_interactions", "selection_interactions", "fresh_interactions")
    assert data["interactions"] == sum(data[part] for part in parts)
    with Path("1/tries.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["seed"]) for row in rows if row["picked"] == "true"] == [data["seed"]]
    assert [float(row["selection_mean"]) for row in rows] == [
        one["selection_return"] for one in data["tries"]
    ]

    # The one that is picked is what training its seed alone leaves, and is judged as that is.
    alone = json.loads(
        spaql_command(*TREE[:-1], str(data["seed"]), "--quiet", "--out", "alone", "--json").stdout
    )
    for name in ("policy.spaql", "history.csv", "settings.json"):
        assert filecmp.cmp(f"1/{name}", f"alone/{name}", shallow=False)
    assert (data["fresh_return"], data["fresh_ci95"]) == (alone["fresh_return"], alone["fresh_ci95"])
    assert "if " in spaql_command("show", "1").stdout or data["size"] == 1


def test_the_text_has_the_fresh_return_first_and_all_that_it_cost() -> None:
    done = spaql_command(*TABLE, *FEW, "--tries", "2", "--workers", "1", "--out", "run")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("fresh return  ")
    assert "100 new episodes, not used for the selection" in lines[0]
    assert "6 selection episodes: biased upwards" in lines[1]
    assert lines[2].startswith("2 tries       ")
    assert "worst" in lines[2]
    assert "interactions in all" in lines[3]
    assert re.search(r"\d arms?, seed \d+ \(try [12] of 2\), saved in run", lines[4])
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["try 1 of 2", "try 2 of 2"]
    assert spaql_command(*TABLE, *FEW, "--tries", "2", "--out", "b", "--workers", "1", "--quiet").stderr == ""


def test_the_picked_try_is_verified() -> None:
    words = ("train", "sent_worlds:SentTank-v0", "--algo", "treesearch", "--steps", "300")
    many = ("--tries", "2", "--workers", "1", "--selection-episodes", "2", "--verify", "--seed", "0")
    data = json.loads(spaql_command(*words, *many, "--out", "run", "--json", "--quiet").stdout)
    assert data["verified"]["proven"] >= 0
    assert Path("run/policy.verdict").exists()


def test_one_try_is_the_command_without_it() -> None:
    plain = spaql_command(*TABLE, "--quiet", "--out", "plain").stdout
    one = spaql_command(*TABLE, "--quiet", "--tries", "1", "--out", "one").stdout
    assert plain.replace("plain", "one") == one
    assert_same(Path("plain"), Path("one"))


def test_tries_are_gone_on_with_to_the_same_bytes() -> None:
    whole = spaql_command(*TABLE, *FEW, "--tries", "3", "--workers", "1", "--out", "whole").stdout
    spaql_command(*TABLE, *FEW, "--tries", "2", "--workers", "1", "--out", "part")
    # The second try was left half-way, and the third was never begun.
    second = Path("part/tries") / f"seed={try_seeds(4, 2)[1]}"
    for file in second.iterdir():
        file.unlink()
    agent = spaql.SPAQL("cartpole200", rollouts=2, seed=try_seeds(4, 2)[1])
    agent.learn(iterations=1, progress_bar=False).save(second / "checkpoint.spaql")
    words = [word for word in TABLE if word not in ("--seed", "4")]
    again = spaql_command(*words, *FEW, "--tries", "3", "--workers", "1", "--out", "part", "--resume").stdout
    assert whole.replace("whole", "part") == again
    assert_same(Path("whole"), Path("part"))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--workers", "2"), 2, "give --tries, at least 2"),
        (("--tries", "0"), 1, "tries is 0, and must be a whole number, at least 1"),
        (("--tries", "2", "--workers", "0"), 1, "workers is 0"),
        (("--tries", "2", "--resume"), 1, "run contains no run to resume: leave out --resume"),
        (
            ("--tries", "2", "--selection-episodes", "0"),
            1,
            "--selection-episodes is 0",
        ),
    ],
)
def test_what_cannot_be_is_refused(words: tuple[str, ...], code: int, message: str) -> None:
    assert message in spaql_command(*TABLE, "--out", "run", *words, code=code).stderr
    assert not Path("run").exists()


def test_tries_are_not_gone_on_with_as_one_run_or_from_another_seed() -> None:
    spaql_command(*TABLE, *FEW, "--tries", "2", "--workers", "1", "--out", "run")
    assert "is a run with several tries" in spaql_command(*TABLE, "--out", "run", "--resume", code=1).stderr
    table = Path("run/tries.csv").read_bytes()
    wrong = ("train", "cartpole200", "--algo", "aql", *TABLE[4:], "--tries", "2", "--out", "run", "--resume")
    assert "is a run of spaql, not aql" in spaql_command(*wrong, "--workers", "1", code=1).stderr
    assert Path("run/tries.csv").read_bytes() == table
    other = (*TABLE[:-1], "5", "--tries", "2", "--out", "run", "--resume")
    assert "started with seed 4, not 5" in spaql_command(*other, code=1).stderr


def test_the_seed_of_a_try_that_fails_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Path("broken_worlds.py").write_text(
        "import gymnasium\n"
        "from sent_worlds import Walk\n"
        "class Broken(Walk):\n"
        "    def step(self, action):\n"
        "        raise RuntimeError('stuck')\n"
        "gymnasium.register('Broken-v0', Broken, max_episode_steps=5)\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ("train", "broken_worlds:Broken-v0", "--algo", "spaql", "--iterations", "2", "--seed", "4")
    error = spaql_command(*words, "--tries", "2", "--workers", "1", "--out", "run", code=1).stderr
    assert "RuntimeError: stuck" in error
    assert "In try 1 of 2, which has the seed 4" in error


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_keeps_the_tries_that_are_finished(workers: str) -> None:
    words = [*TABLE[:5], "40", *TABLE[6:], *FEW, "--tries", "40", "--workers", workers, "--out", "run"]
    with subprocess.Popen([sys.executable, "-m", "spaql", *words], stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        assert run.stderr.readline().startswith("try ")
        run.send_signal(signal.SIGINT)
        said = run.communicate(timeout=120)[1]
    assert run.returncode == 130, said
    assert "tries in run are finished, and none is selected; continue with --resume" in said
    assert not Path("run/policy.spaql").exists()
    spaql_command(*words[:-6], "--tries", "3", "--workers", "1", "--out", "run", "--resume")
    spaql_command(*words[:-6], "--tries", "3", "--workers", "1", "--out", "whole")
    for name in ("tries.csv", "policy.spaql", "history.csv"):
        assert filecmp.cmp(f"run/{name}", f"whole/{name}", shallow=False)
