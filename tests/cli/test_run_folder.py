"""Where `spaql train` writes: one process at a time, all or nothing, and faults found before the work."""

import errno
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import spaql
from spaql.archive import write_together
from spaql.leases import held

TRAIN = (
    sys.executable,
    "-m",
    "spaql",
    "train",
    "cartpole200",
    "--algo",
    "spaql",
    "--rollouts",
    "2",
    "--seed",
    "1",
)
resource = pytest.importorskip("resource")


def begin(folder: Path, iterations: int, *more: str) -> subprocess.Popen[str]:
    words = (*TRAIN, "--iterations", str(iterations), "--out", "run", *more)
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    said = process.communicate(timeout=300)
    return process.returncode, "".join(said)


@pytest.fixture
def training(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A training that takes hours, which has begun."""
    process = begin(tmp_path, 100_000_000)
    deadline = time.monotonic() + 120
    while not (tmp_path / "run" / ".lock").exists():
        assert process.poll() is None, ended(process)
        assert time.monotonic() < deadline
        time.sleep(0.1)
    yield process
    process.kill()
    process.communicate()


def test_the_second_of_two_trainings_is_refused(training: subprocess.Popen[str], tmp_path: Path) -> None:
    for more in ((), ("--resume",)):
        code, said = ended(begin(tmp_path, 2, *more))
        assert code == 1, said
        now = time.strftime("%Y-%m-%d")
        assert re.search(
            rf"run is in use by process {training.pid} on \S+ since {now} \d\d:\d\d:\d\d: wait", said
        )
    training.send_signal(signal.SIGINT)
    code, said = ended(training)
    assert code == 130, said
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "history.csv",
        "policy.spaql",
        "settings.json",
    ]


def test_what_a_killed_training_held_is_taken_over(training: subprocess.Popen[str], tmp_path: Path) -> None:
    training.kill()
    training.wait()
    for checkpoint in (tmp_path / "run").glob("*.spaql"):
        checkpoint.unlink()
    code, said = ended(begin(tmp_path, 2))
    assert code == 0, said
    assert not (tmp_path / "run" / ".lock").exists()


def test_of_two_that_begin_at_once_one_is_refused(tmp_path: Path) -> None:
    outcomes = [ended(process) for process in [begin(tmp_path, 3000), begin(tmp_path, 3000)]]
    assert sorted(code for code, _ in outcomes) == [0, 1], outcomes
    assert re.search("is in use by|already exists", next(said for code, said in outcomes if code))
    assert spaql.load(tmp_path / "run").iterations == 3000


def test_a_folder_that_nothing_was_put_into_is_removed(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), held(tmp_path / "a" / "b"):
        _ = 1 / 0
    assert not list(tmp_path.iterdir())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("to mount a small disk takes the rights of root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_reported_with_the_path(small_disk: Path) -> None:
    code, said = ended(begin(small_disk, 2))  # which has room for the lock, and not for a run
    assert code == 1
    assert re.fullmatch(r"Error: No space left on device: run/[\w.]+", said.splitlines()[-1])
    assert not list(small_disk.iterdir())
    (small_disk / "filler").write_bytes(b"x" * 4096 * 2)
    began = time.monotonic()
    code, said = ended(begin(small_disk, 10**8))
    assert code == 1
    assert said.splitlines()[-1] == "Error: No space left on device: run"
    assert time.monotonic() - began < 60, "it trained first"
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


def test_saving_to_a_full_disk_says_where(small_disk: Path) -> None:
    agent = spaql.SPAQL("cartpole200", seed=0, rollouts=2).learn(iterations=2, progress_bar=False)
    (small_disk / "filler").write_bytes(b"x" * 4096)
    path = small_disk / "deep" / "agent.spaql"
    with pytest.raises(OSError, match="No space left") as caught:
        agent.save(path)
    assert caught.value.filename == str(path)
    assert [one.name for one in small_disk.iterdir()] == ["filler"]


def test_files_that_are_written_together_are_all_there_or_none(tmp_path: Path) -> None:
    """A limit on the size of files fails as a full disk does, and needs no rights."""
    (tmp_path / "old").write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            write_together({tmp_path / "old": b"new", tmp_path / "new" / "large": b"x" * 2000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(tmp_path / "new" / "large"))
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_bytes() == b"old"


def test_a_folder_that_cannot_be_written_to_is_found_out_before_the_training(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    began = time.monotonic()
    code, said = ended(begin(tmp_path, 10**8, "--out", "file/run"))
    assert code == 1
    assert said.splitlines()[-1] == "Error: Not a directory: file/run"
    assert time.monotonic() - began < 60
