"""What would fail at the end, or go on for long in vain, is refused at the beginning."""

import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import spaql
from spaql.cli import main
from spaql.plugins.paper.claims import Claim
from spaql.plugins.paper.command import _text
from spaql.plugins.sweeps.execute import Outcome
from spaql.plugins.sweeps.sweeps import SweepProgress


@pytest.mark.parametrize(
    ("command", "missing", "told"),
    [
        (
            "study compare --quick --out out",
            ["matplotlib", "scipy"],
            "The report needs matplotlib and scipy: pip inst",
        ),
        (
            "study compare --quick --out out",
            ["sb3_contrib"],
            "A network needs sb3_contrib: pip install 'spaql[base",
        ),
        ("paper --quick --out out", ["scipy"], "The report needs scipy: pip install 'spaql[stats]'."),
        ("paper --quick --trpo --out out", ["sb3_contrib"], "TRPO needs sb3_contrib"),
        (
            "stress none --map basin.svg",
            ["matplotlib"],
            "The map needs matplotlib: pip install 'spaql[plot]'.",
        ),
        ("draw none tree", ["matplotlib"], "A figure needs matplotlib: pip install 'spaql[plot]'."),
    ],
)
def test_an_extra_is_looked_for_first(
    command: str, missing: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "none").touch()
    for package in missing:
        monkeypatch.setitem(sys.modules, package, None)
    done = CliRunner().invoke(main, command.split())
    assert done.exit_code == 1
    assert done.stderr.startswith(f"Error: {told}")
    assert not (tmp_path / "out").exists()


def test_the_quick_version_of_the_paper_says_first_what_it_cannot_do() -> None:
    claim = Claim("SPAQL learns.", "Abstract", "yes", "more than random", "no", "does not agree")
    lines = _text([claim], [Path("report.html")], 67.0, quick=True).splitlines()
    assert lines[0].startswith("The quick version cannot judge the paper")
    assert lines[2].startswith("does not agree")


def test_the_first_runs_tell_nothing_of_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    progress = SweepProgress(40, 0, show=True)
    run = spaql.Run(problem="pendulum", algorithm="spaql", iterations=1, seed=0)
    said = []
    for now[0] in (30.0, 60.0):
        progress.update(Outcome(run, 100))
        said.append(" left" in capsys.readouterr().err)
    assert said == [False, True]
