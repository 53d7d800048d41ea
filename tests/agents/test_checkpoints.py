"""Checkpoints, and going on from a run folder as a user does."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import spaql
from spaql.cli import main

TRAIN = ["train", "cartpole200", "--algo", "spaql", "--seed", "3", "--rollouts", "4", "--quiet", "--json"]


def run(*arguments: str) -> dict[str, object]:
    done = CliRunner().invoke(main, [*TRAIN, *arguments])
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.stdout))


def test_training_goes_on_from_a_checkpoint_to_the_same_bytes(tmp_path: Path) -> None:
    whole = spaql.SPAQLTS("cartpole200", seed=1, rollouts=4)
    whole.learn(iterations=25, checkpoint=tmp_path / "at-20.spaql", checkpoint_every=10, progress_bar=False)
    whole.save(tmp_path / "whole.spaql")
    agent = spaql.load(tmp_path / "at-20.spaql")
    assert agent.iterations == 20
    agent.learn(iterations=5, progress_bar=False)
    agent.save(tmp_path / "resumed.spaql")
    assert (tmp_path / "resumed.spaql").read_bytes() == (tmp_path / "whole.spaql").read_bytes()


def test_a_run_folder_is_gone_on_with(tmp_path: Path) -> None:
    run("--iterations", "20", "--out", str(tmp_path / "whole"))
    run("--iterations", "8", "--out", str(tmp_path / "part"))
    run("--iterations", "20", "--out", str(tmp_path / "part"), "--resume")
    for name in ("policy.spaql", "history.csv", "settings.json"):
        assert (tmp_path / "part" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_killed_training_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    run("--iterations", "20", "--out", str(tmp_path / "whole"))
    agent = spaql.SPAQL("cartpole200", seed=3, rollouts=4)
    agent.learn(
        iterations=20,
        checkpoint=tmp_path / "killed/checkpoint.spaql",
        checkpoint_every=20,
        progress_bar=False,
    )
    run("--iterations", "20", "--out", str(tmp_path / "killed"), "--resume")  # there is nothing left to train
    assert not (tmp_path / "killed" / "checkpoint.spaql").exists()
    for name in ("policy.spaql", "history.csv", "settings.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--algo", "aql"],
            "is a run of spaql, not aql: resume it with that algorithm. On the command line: --algo spaql.",
        ),
        (["--scaling", "7"], "has scaling 20.0, not 7.0"),
        (["--horizon", "50"], "has horizon 200, not 50"),
        (["--seed", "4"], "has seed 3, not 4"),
    ],
)
def test_another_run_is_not_gone_on_with(tmp_path: Path, options: list[str], message: str) -> None:
    run("--iterations", "2", "--out", str(tmp_path / "run"))
    arguments = [*TRAIN, "--iterations", "4", "--out", str(tmp_path / "run"), "--resume", *options]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 1
    assert message in done.output


def test_a_run_of_another_plant_is_named_and_not_described(tmp_path: Path) -> None:
    run("--iterations", "2", "--out", str(tmp_path / "run"))
    words = [
        "train",
        "pendulum5",
        *TRAIN[2:],
        "--iterations",
        "4",
        "--out",
        str(tmp_path / "run"),
        "--resume",
    ]
    done = CliRunner().invoke(main, words)
    assert done.stderr == f"Error: {tmp_path / 'run'} is a run of cartpole200, not pendulum5.\n"


def test_a_finished_run_says_that_nothing_is_left(tmp_path: Path) -> None:
    run("--iterations", "4", "--out", str(tmp_path / "run"))
    before = (tmp_path / "run" / "history.csv").read_bytes()
    for asked in ("4", "3"):
        words = [*TRAIN, "--iterations", asked, "--out", str(tmp_path / "run"), "--resume"]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0
        assert "already has 4 iterations, and nothing was added" in done.stderr
    assert (tmp_path / "run" / "history.csv").read_bytes() == before


def test_a_training_killed_in_its_first_checkpoint_is_no_dead_end(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".checkpoint.spaql.4711.0123abcd").write_bytes(b"half a file")
    run("--iterations", "2", "--out", str(folder))
    assert sorted(path.name for path in folder.iterdir()) == ["history.csv", "policy.spaql", "settings.json"]


def test_there_must_be_something_to_go_on_with(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        main, [*TRAIN, "--iterations", "2", "--out", str(tmp_path / "none"), "--resume"]
    )
    assert done.exit_code == 1
    assert "leave out --resume" in done.output
