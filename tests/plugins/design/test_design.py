"""`spaql design`, as a user runs it: a report with what was measured, stages that are kept, and refusals."""

import hashlib
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from spaql.cli import main

pytest.importorskip("matplotlib")

PLANT = """
import spaql

def start(rng):
    return rng.uniform(0.0, 1.0), rng.uniform(0.2, 0.8)

def step(state, action):
    level, goal = state
    after = 0.9 * level + 0.1 * action[0]
    return (after, goal), -abs(goal - after), False

spaql.Dynamics(
    id="test/DesignedTank-v0", start=start, step=step, horizon=30, sample_time=1.0,
    observations={"level [m]": (0, 1), "goal [m]": (0, 1)}, actions={"valve": (0, 1)},
    setpoints={"level [m]": "goal [m]"}, noise={"level [m]": 0.01},
)
"""
WORDS = ["designed_tank:test/DesignedTank-v0", "--steps", "4000", "--episodes", "5", "--out", "tank"]
STAGES = (
    "check", "classical", "train", "evaluate", "plainer", "stress", "respond", "controller", "prove", "export"
)  # fmt: skip
LOG = ["--observations", "x", "--action", "u", "--action-range=-1,1", "--episode", "run", "--cost", "x**2"]


def design(*words: str, code: int = 0) -> str:
    sys.argv = ["spaql", "design", *words]
    done = CliRunner().invoke(main, sys.argv[1:])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "designed_tank.py").write_text(PLANT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "designed_tank", raising=False)
    monkeypatch.setattr(sys, "argv", [])
    return tmp_path


def stages(shown: str) -> dict[str, bool]:
    """Return the stages that were printed, and whether each was kept."""
    lines = re.findall(r"^(\w+) .*\((.*)\)$", shown, re.MULTILINE)
    return {name: spent == "done before" for name, spent in lines if name in STAGES}


@pytest.mark.slow
def test_a_plant_becomes_a_report_and_stages_are_kept(folder: Path) -> None:
    shown = design(*WORDS)
    assert stages(shown) == dict.fromkeys(STAGES, False)
    page = (folder / "tank/report.html").read_text(encoding="utf-8")
    conclusion = shown.rstrip().splitlines()[-1]
    assert re.search("compared with|use it|Try more", conclusion)
    for text in ("noise (sd)", "What is proven", "signature", "spaql design", "def step(", "> "):
        assert text.replace(">", "&gt;") in page
    for name in ("run/policy.spaql", "controller.c", "controller.h"):
        assert hashlib.sha256((folder / "tank" / name).read_bytes()).hexdigest() in page
    returns = json.loads((folder / "tank/stages/evaluate.json").read_text())
    assert returns["line"].split(" on ")[0] in page
    assert not re.search(r'(src|href)="(?!#|data:)|url\((?!#)|@import', page)

    again = design(*WORDS)
    assert stages(again) == dict.fromkeys(STAGES, True)
    assert (folder / "tank/report.html").read_text(encoding="utf-8") == page

    (folder / "tank/controller.c").write_text("changed")
    assert [name for name, kept in stages(design(*WORDS)).items() if not kept] == ["export"]
    data = json.loads(design(*WORDS, "--seed", "0", "--json", "--quiet"))
    assert set(data["stages"]) == set(STAGES)
    assert data["conclusion"] in conclusion


@pytest.mark.long
def test_ctrl_c_and_the_same_command_end_in_the_same_controller(folder: Path) -> None:
    words = [sys.executable, "-m", "spaql", "design", *WORDS]
    words[words.index("4000")] = "100000"
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith("classical"):
            pass
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
    assert process.returncode == 130
    assert "Interrupted: the same command continues." in told
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert stages(done.stdout)["classical"]
    words[-1] = "other"
    assert subprocess.run(words, capture_output=True).returncode == 0
    file = "run/policy.spaql"
    assert (folder / "tank" / file).read_bytes() == (folder / "other" / file).read_bytes()


@pytest.mark.long
def test_a_log_says_what_cannot_be_known(folder: Path) -> None:
    rows = ["run,x,u"]
    for run in range(12):
        x = (run * 37 % 17 - 8) / 8
        for i in range(12):
            u = ((run * 5 + i * 7) % 9 - 4) / 4
            rows.append(f"{run},{x},{u}")
            x += 0.3 * u
    (folder / "log.csv").write_text("\n".join(rows))
    shown = design("log.csv", *LOG, "--out", "log")
    assert "the return on the plant is not known" in shown.replace("\n", " ")
    page = (folder / "log/report.html").read_text(encoding="utf-8")
    assert page.count("not available from a log") >= 5
    assert "a proof needs them" in page
    assert (folder / "log/controller.c").exists()


def test_what_does_not_fit_is_refused(folder: Path) -> None:
    (folder / "log.csv").write_text("x,u\n0,1\n")
    assert "A log needs --observations and --action" in design("log.csv", "--out", "d", code=2)
    assert "Leave out --episode: CartPole-v1 is no log" in design(
        "CartPole-v1", "--episode", "run", "--out", "d", code=2
    )
    assert "Leave out --steps: log.csv is a log" in design(
        "log.csv", *LOG, "--steps", "5", "--out", "d", code=2
    )
    assert "There is no log no.csv" in design("no.csv", *LOG, "--out", "d", code=1)
    assert "did you mean CartPole-v1" in design("CartPol-v1", "--out", "d", code=1)
    (folder / "other").mkdir()
    (folder / "other/file").touch()
    assert "other already exists" in design(*WORDS[:-1], "other", code=1)
