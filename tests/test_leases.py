"""Leases: one process holds each, and its end gives it back."""

import errno
import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lease_drivers import take_all, take_and_tidy
from spaql import leases
from spaql.leases import is_held, release, take


def test_one_of_two_gets_a_lease(tmp_path: Path) -> None:
    path = tmp_path / "run" / "lease"
    assert not is_held(path)
    first = take(path)
    assert first is not None
    assert take(path) is None
    assert is_held(path)
    release(first, path)
    assert not is_held(path)
    assert not path.exists()
    second = take(path)
    assert second is not None
    release(second, path)


def test_the_lease_of_a_dead_process_is_free_at_once(tmp_path: Path) -> None:
    path = tmp_path / "run" / "lease"
    code = (
        "import os, sys; from pathlib import Path; from spaql.leases import take;"
        "kept = take(Path(sys.argv[1])); assert kept is not None; os._exit(1)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 1
    assert path.exists()
    assert not is_held(path)
    file = take(path)
    assert file is not None
    assert is_held(path)
    release(file, path)


def test_a_lease_is_not_that_of_a_file_that_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lease"
    lock = leases._lock
    removed = []

    def remove_first(file):  # as a holder does, between the two steps of the next
        if not removed:
            path.unlink()
            removed.append(path)
        return lock(file)

    monkeypatch.setattr(leases, "_lock", remove_first)
    file = take(path)
    assert file is not None
    assert removed
    assert take(path) is None
    release(file, path)


@pytest.mark.long
def test_folders_that_others_remove_are_made_again(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    drivers = [context.Process(target=take_and_tidy, args=(str(tmp_path), 2000)) for _ in range(3)]
    for process in drivers:
        process.start()
    for process in drivers:
        process.join(240)
    assert [process.exitcode for process in drivers] == [0, 0, 0]


def test_many_at_once_share_the_leases(tmp_path: Path) -> None:
    for i in range(0, 200, 4):
        (tmp_path / str(i)).mkdir()
        (tmp_path / str(i) / "lease").write_text("of a process that has ended")
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    start = time.time() + 3
    drivers = [context.Process(target=take_all, args=(str(tmp_path), start, results)) for _ in range(4)]
    for process in drivers:
        process.start()
    taken = [results.get(timeout=60) for _ in drivers]
    for process in drivers:
        process.kill()
        process.join()
    assert sorted(i for share in taken for i in share) == list(range(200))


@pytest.mark.skipif(sys.platform == "win32", reason="locks are others")
def test_without_locks_a_lease_is_had_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    path = tmp_path / "lease"
    file = take(path)
    assert file is not None
    assert not is_held(path)
    release(file, path)
