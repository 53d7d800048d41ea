import json
from pathlib import Path

from click.testing import CliRunner

import spaql
from spaql.cli import main


def test_an_environment_is_checked() -> None:
    done = CliRunner().invoke(main, ["check", "MountainCar-v0"])
    assert done.exit_code == 0, done.output
    assert "passed   seeds repeat the episode" in done.stdout
    assert done.stdout.strip().splitlines()[-1].startswith("MountainCar-v0: 18 passed")
    wrong = CliRunner().invoke(main, ["check", "MountainCa-v0", "--json"])
    assert wrong.exit_code == 1
    report = json.loads(wrong.stdout)
    assert not report["passed"]
    assert "cannot make" in report["checks"][0]["why"]


def test_the_algorithm_of_a_run_is_checked(tmp_path: Path) -> None:
    agent = spaql.SPAQL("cartpole200", seed=0, rollouts=2).learn(iterations=2, progress_bar=False)
    agent.save(tmp_path / "a.spaql")
    done = CliRunner().invoke(main, ["check", str(tmp_path / "a.spaql"), "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["subject"] == "SPAQL on cartpole200"
    assert {check["outcome"] for check in report["checks"]} == {"passed"}
    spaql.Design(spaql.controller_of(agent), agent.problem).save(tmp_path / "c.spaql")
    refused = CliRunner().invoke(main, ["check", str(tmp_path / "c.spaql")])
    assert refused.exit_code == 1
    assert "does not learn" in refused.output
