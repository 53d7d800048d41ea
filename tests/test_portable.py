"""What Linux, macOS and Windows have in common: here only Linux is real, and the others are simulated."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import spaql

SOURCES = sorted(Path(spaql.__file__).parent.rglob("*.py"))
ELSEWHERE_MISSING = {
    *("os.fork", "os.getuid", "os.geteuid", "os.getpgid", "os.setsid", "os.uname"),
    *("os.mkfifo", "os.statvfs", "os.getloadavg", "os.symlink", "os.chmod", "os.chown", "os.nice"),
    *(f"signal.{name}" for name in ("SIGALRM", "SIGHUP", "SIGQUIT", "SIGUSR1", "alarm", "pause")),
}
POSIX_MODULES = {"grp", "posix", "pty", "pwd", "resource", "termios", "tty"}
FALLBACKS = {
    "os.killpg": "running.py",
    "signal.SIGKILL": "running.py",
    "fcntl.flock": "leases.py",
    "os.sched_getaffinity": "local.py",
}
"""What some systems do not have, and the one file that knows what to do then."""


def nodes(kind: type[ast.AST]) -> Iterator[tuple[Path, ast.AST]]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, kind):
                yield path, node


def test_no_source_uses_what_windows_or_macos_have_not() -> None:
    for path, node in nodes(ast.Attribute):
        name = ast.unparse(node)
        assert name not in ELSEWHERE_MISSING, f"{path}: {name}"
        if name in FALLBACKS:
            assert path.name == FALLBACKS[name], f"{path}: {name}"
    for path, node in nodes(ast.Import):
        assert isinstance(node, ast.Import)
        for one in node.names:
            assert one.name not in POSIX_MODULES, f"{path}: {one.name}"
    for path, node in nodes(ast.Constant):
        assert isinstance(node, ast.Constant)
        if isinstance(node.value, str):
            assert not node.value.startswith(("/proc", "/tmp", "/dev", "/usr", "/etc")), (
                f"{path}: {node.value}"
            )


def test_every_text_file_is_read_and_written_as_utf_8() -> None:
    """The encoding of Windows is another."""
    for path, node in nodes(ast.Call):
        assert isinstance(node, ast.Call)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        words = {word.arg: ast.unparse(word.value) for word in node.keywords}
        shown = f"{path}, line {node.lineno}"
        if ast.unparse(node.func) == "formatter.write_text":  # of click
            continue
        if name in ("read_text", "write_text"):
            assert "encoding" in words or "'utf-8'" in map(ast.unparse, node.args), shown
        elif name == "open" and ast.unparse(node.func) not in ("os.open", "Image.open"):
            own = node.args[0 if isinstance(node.func, ast.Attribute) else 1 :]
            if not any("b" in ast.unparse(mode) for mode in own):
                assert "encoding" in words, shown
        elif name == "run" and words.get("text") == "True":
            assert "encoding" in words, shown


def python(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(code, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
    )


SPAWNED = """
import multiprocessing
import gymnasium
import spaql
from spaql.problems.environment import DynamicsEnv

if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    for env in ("CartPole-v1", gymnasium.make("CartPole-v1"), "pendulum5"):
        agent = spaql.SPAQL(env, seed=0, rollouts=2, horizon=10, compiled=False, parallel=True)
        agent.learn(iterations=1, progress_bar=False)
    plain = spaql.SPAQL("CartPole-v1", seed=0, rollouts=2, horizon=10, compiled=False)
    parallel = spaql.SPAQL("CartPole-v1", seed=0, rollouts=2, horizon=10, compiled=False, parallel=True)
    for agent in (plain, parallel):
        agent.learn(iterations=1, progress_bar=False)
    assert (plain.history["mean_return"] == parallel.history["mean_return"]).all()
"""


@pytest.mark.slow
def test_environments_in_processes_of_their_own_need_no_fork(tmp_path: Path) -> None:
    done = python(SPAWNED, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_stdout_that_cannot_show_a_sign_shows_its_number(tmp_path: Path) -> None:
    """As on Windows, where what is written to a file or a pipe is in an encoding of the region."""
    spaql.SPAQL("cartpole200", rollouts=2, seed=0).learn(iterations=1, progress_bar=False).save(
        tmp_path / "a.spaql"
    )
    code = "import sys; from spaql.cli import main; sys.argv = ['spaql', 'evaluate', 'a.spaql']; main()"
    done = python(code, tmp_path, PYTHONIOENCODING="iso8859-5")  # Cyrillic, without ±
    assert done.returncode == 0, done.stderr
    assert "\\xb1" in done.stdout
