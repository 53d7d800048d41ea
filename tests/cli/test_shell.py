"""What shells and scripts rely on: one JSON document, exit codes, completion, pipes."""

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import spaql
from export_forms import FORMS, SLOW_FORMS
from spaql.cli import main
from spaql.cli.export import TARGETS
from spaql.export import EXPORTERS
from spaql.export.languages.micropython import MicroPython
from spaql.export.languages.octave import Octave

SPAQL = Path(sysconfig.get_path("scripts")) / "spaql"


def commands_of(group: click.Group, prefix: str = "") -> dict[str, click.Command]:
    """Return all commands, those of a group with its name before theirs."""
    named = {}
    for name in group.list_commands(context := click.Context(group)):
        command = group.get_command(context, name)
        assert command is not None
        full = f"{prefix}{name}"
        named |= commands_of(command, f"{full} ") if isinstance(command, click.Group) else {full: command}
    return named


COMMANDS = commands_of(main)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("run")
    spaql.SPAQL("cartpole200", rollouts=2, seed=0).learn(iterations=5, progress_bar=False).save(
        folder / "policy.spaql"
    )
    return str(folder)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    rows = [
        f"{run},{(run * 37 + i * 11) % 17 - 8},{(run + i) % 3 - 1}" for run in range(8) for i in range(12)
    ]
    path.write_text("\n".join(["run,x,u", *rows]), encoding="utf-8")
    return str(path)


@pytest.fixture
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


STUDY = (
    'problems = ["cartpole200"]\nalgorithms = ["spaql"]\niterations = 1\nrollouts = 1\nfresh_episodes = 2\n'
)
PLANTREE = str(Path(__file__).parents[1] / "golden" / "0.1" / "plantree-cartpole.spaql")
REPORTING: dict[str, tuple[list[str], str]] = {
    "new": (["new", "project"], "files"),
    "train": (["train", "cartpole200", "--effort", "0.01", "--iterations", "1", "--out=r"], "fresh_return"),
    "distil": (["distil", "RUN", "--env=cartpole200", "--steps=0", "--rounds=0", "--out=d"], "kept"),
    "design": (["design", "CartPole-v1", "--steps", "200", "--out", "design"], "conclusion"),
    "fit": (
        ["fit", "LOG", "--observations", "x", "--action", "u", "--action-range=-1,1", "--episode", "run",
         "--cost", "x**2", "--effort", "0.01", "--anyway", "--out", "fitted"],
        "verdict",
    ),
    "improve": (["improve", "RUN", "--steps", "2000", "--episodes", "2", "--out", "better"], "change"),
    "simplify": (["simplify", "RUN", "--episodes", "3", "--out", "small.spaql"], "saved"),
    "edit": (["edit", "RUN", "--leaf", "1", "--lock", "--episodes", "1", "--out", "e.spaql"], "after"),
    "zoo": (["zoo"], "controllers"),
    "show": (["show", "RUN"], "rules"),
    "page": (["page", "RUN", "--out", "page.html"], "file"),
    "model": (["model", PLANTREE], "cells"),
    "draw": (["draw", "RUN", "map", "--x", "2", "--y", "3", "--episodes", "2"], "file"),
    "evaluate": (["evaluate", "RUN", "--episodes", "1"], "mean"),
    "stress": (["stress", "RUN", "--episodes", "4"], "success"),
    "verify": (["verify", "TREE", "--seconds", "1"], "proven"),
    "export": (["export", "RUN", "--to", "python", "--points", "100", "--out", "code"], "points"),
    "study run": (["study", "run", "study.toml", "--workers", "1", "--out", "store"], "runs"),
    "study results": (["study", "results", "store"], "groups"),
    "paper": (["paper", "--only", "trpo", "--quick", "--out", "paper"], "claims"),
    "study compare": (["study", "compare", "--only", "classical", "--quick", "--out", "compare"], "pairs"),
    "check": (["check", "CartPole-v1"], "checks"),
    "warm-up": (["warm-up", "--quiet"], "trained"),
}  # fmt: skip


def takes_json(command: click.Command) -> bool:
    return any(param.name == "as_json" for param in command.params)


def test_every_command_that_reports_does_so_as_json() -> None:
    assert {name for name, command in COMMANDS.items() if takes_json(command)} == set(REPORTING)
    assert set(COMMANDS) == set(REPORTING)


@pytest.mark.parametrize(
    "name", [name for name in REPORTING if name not in ("paper", "design") and not name.startswith("study")]
)
@pytest.mark.usefixtures("_in_an_empty_folder")
def test_stdout_is_one_json_document(name: str, run: str, log: str) -> None:
    if name == "draw":
        pytest.importorskip("matplotlib")
    words, key = REPORTING[name]
    tree = shutil.copy(PLANTREE, ".")  # a verdict is stored beside it
    given = [{"RUN": run, "LOG": log, "TREE": tree}.get(word, word) for word in words]
    done = CliRunner().invoke(main, [*given, "--json"])
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == 1
    document = json.loads(done.stdout, parse_constant=pytest.fail)  # NaN and Infinity are no JSON
    assert key in document


NOISY = """
import gymnasium, sys, time
class Noisy(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Box(-1, 1, (1,)), gymnasium.spaces.Discrete(2)
    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        print("a word on stdout", flush=True)
        return self.observation_space.low, {}
    def step(self, action):
        return self.observation_space.low, 0.0, False, False, {}
class Slow(Noisy):
    def reset(self, seed=None, options=None):
        print("ready", file=sys.stderr, flush=True)
        time.sleep(60)
gymnasium.register("Noisy-v0", Noisy, max_episode_steps=5)
gymnasium.register("Slow-v0", Slow, max_episode_steps=5)
"""


def test_what_environments_print_does_not_get_into_the_json(tmp_path: Path) -> None:
    """Also of a sweep, whose environments are in other processes; the module is found in this folder."""
    (tmp_path / "noisy.py").write_text(NOISY)
    (tmp_path / "study.toml").write_text(STUDY.replace("cartpole200", "noisy:Noisy-v0"))
    sweep = [SPAQL, "study", "run", "study.toml", "--workers", "1", "--out", "store", "--json", "--quiet"]
    done = subprocess.run(sweep, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["finished"] == 1
    assert "a word on stdout" in done.stderr
    shown = subprocess.run(
        [SPAQL, "study", "results", "store", "--json"], cwd=tmp_path, capture_output=True, text=True
    )
    assert json.loads(shown.stdout)["groups"][0]["runs"] == 1


def test_an_interrupted_command_ends_with_130(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    words = [SPAQL, "check", "noisy:Slow-v0"]
    # The command would inherit that interrupts are ignored, as they are in a job in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stderr.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "Interrupted.\n")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["show", "RUN"], 0),
        (["--help"], 0),
        (["show", "nowhere"], 1),
        (["check", "nowhere"], 1),
        (["new", "/proc/nowhere"], 1),
        (["page", "RUN", "--out", "/proc/card.html"], 1),
        (["show"], 2),
        (["show", "RUN", "--digits", "few"], 2),
        (["shw", "RUN"], 2),
    ],
)
def test_exit_codes(words: list[str], code: int, run: str) -> None:
    done = CliRunner().invoke(main, [run if word == "RUN" else word for word in words])
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    assert f"\n    {code} " in CliRunner().invoke(main, ["--help-all"]).stdout


def test_a_reader_that_goes_away_is_no_error(run: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([SPAQL, "show", run], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def completions(*words: str) -> list[str]:
    """Return what bash would get; each line is a type and a candidate."""
    environment = {
        "_SPAQL_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["spaql", *words]),
        "COMP_CWORD": str(len(words)),
    }
    asked = CliRunner().invoke(main, [], env=environment, prog_name="spaql")
    assert asked.exit_code == 0, asked.output
    return asked.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["s"], ["plain,show", "plain,stress", "plain,simplify", "plain,study"]),
        (["train", "cartp"], ["plain,cartpole200", "plain,CartPole-v1"]),
        (["train", "x", "--algo", "spa"], ["plain,spaql", "plain,spaql-ts"]),
        (["train", "x", "--temperature-m"], ["plain,--temperature-min"]),
        (["export", "--to", "p"], ["plain,plcopen", "plain,python"]),
        (["show", "ru"], ["file,ru"]),
        (["zoo", "oven"], ["plain,oven-treesearch"]),
        (["study", "r"], ["plain,results", "plain,run"]),
    ],
)
def test_completion(words: list[str], expected: list[str]) -> None:
    assert completions(*words) == expected


def test_a_real_bash_completes() -> None:
    asked = f"""
        PATH={SPAQL.parent}:$PATH
        eval "$(_SPAQL_COMPLETE=bash_source spaql)"
        COMP_WORDS=(spaql draw runs val); COMP_CWORD=3
        _spaql_completion spaql; echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "value\n"


def read_until(terminal: int, mark: bytes) -> bytes:
    """Return what a terminal shows up to a mark, or for a minute."""
    shown = b""
    deadline = time.monotonic() + 60
    while mark not in shown and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 4096)
    return shown


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_a_real_zsh_completes(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "command-line.md"
    line = re.search(r"^\$ echo '(.*zsh_source.*)' >> ~/.zshrc$", page.read_text(), re.MULTILINE)
    assert line is not None
    (tmp_path / ".zshrc").write_text(f'{line[1]}\nPS1="ready> "\n')
    path = f"{SPAQL.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "ZDOTDIR": str(tmp_path), "TERM": "xterm", "PATH": path}
    terminal, child = pty.openpty()
    zsh = subprocess.Popen(
        ["zsh", "-i"], stdin=child, stdout=child, stderr=child, env=environment, start_new_session=True
    )
    try:
        assert b"ready> " in read_until(terminal, b"ready> ")
        os.write(terminal, b"spaql draw runs val\t")
        completed = b"value"[3:]
        assert completed in read_until(terminal, completed)
    finally:
        zsh.kill()
        zsh.wait()


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_a_real_fish_completes(tmp_path: Path) -> None:
    asked = f"set -x PATH {SPAQL.parent} $PATH; _SPAQL_COMPLETE=fish_source spaql | source; "
    asked += 'complete -C "spaql draw runs val"'
    environment = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(["fish", "-c", asked], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "value\n"


def test_what_the_help_says_is_what_there_is() -> None:
    assert tuple(EXPORTERS) == TARGETS
    points = next(param for param in COMMANDS["export"].params if param.name == "points")
    targets = [target for target, _ in (FORMS | SLOW_FORMS).values()]
    slow = {type(one) for one in targets if one.points != 1_000_000}
    assert slow == {Octave, MicroPython}
    assert {one.points for one in slow} == {100_000}
    assert "1000000; 100000 for octave and micropython" in points.help


def test_the_help_of_a_command_is_quick() -> None:
    """It imports nothing that takes time; only `train` must know the settings of all algorithms."""
    code = f"""
import sys
from spaql.cli import main
for name in {[name for name in COMMANDS if name != "train"]}:
    try: main([*name.split(), "--help"])
    except SystemExit: pass
    assert not {{"numpy", "numba", "gymnasium"}} & set(sys.modules), name
"""
    subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
