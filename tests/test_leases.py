import errno
import json
import multiprocessing
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from lease_drivers import take_all, take_all_elsewhere, take_all_without_links, take_and_tidy
from spaql import SpaqlError, leases
from spaql.leases import Driver, is_held

looks_up_processes = pytest.mark.skipif(
    not Path("/proc").exists(), reason="a dead driver is known at once by /proc alone"
)


def dead_driver(folder: Path, place: Path) -> None:
    """Let a process take a lease and die with it."""
    code = (
        "import os, sys; from pathlib import Path; from spaql.leases import Driver;"
        "assert Driver(Path(sys.argv[1])).take(Path(sys.argv[2])); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", code, str(folder), str(place)], check=False)


def test_one_of_two_drivers_gets_a_lease(tmp_path: Path) -> None:
    place = tmp_path / "run"
    with closing(Driver(tmp_path / "drivers")) as first, closing(Driver(tmp_path / "drivers")) as second:
        assert first.take(place)
        assert not second.take(place)
        assert is_held(place)
        second.release(place)  # which it does not have
        assert not second.take(place)
        first.release(place)
        assert not is_held(place)
        assert second.take(place)


@looks_up_processes
def test_the_lease_of_a_dead_process_is_taken_over_at_once(tmp_path: Path) -> None:
    place = tmp_path / "run"
    dead_driver(tmp_path / "drivers", place)
    assert not is_held(place)
    with closing(Driver(tmp_path / "drivers")) as first, closing(Driver(tmp_path / "drivers")) as second:
        assert first.take(place)
        assert not second.take(place)
        assert [path.name for path in sorted(place.iterdir())] == ["lease.0", "lease.1"]


def test_a_driver_on_another_machine_lives_while_it_is_heard_of(tmp_path: Path) -> None:
    place = tmp_path / "run"
    with closing(Driver(tmp_path / "drivers")) as far, closing(Driver(tmp_path / "drivers")) as near:
        identity = json.loads(far._file.read_text())
        far._file.write_text(json.dumps(identity | {"machine": "elsewhere"}))
        assert far.take(place)
        assert not near.take(place)
        long_ago = time.time() - 100
        os.utime(far._file, (long_ago, long_ago))
        assert near.take(place)


def test_one_touch_renews_all_leases(tmp_path: Path) -> None:
    places = [tmp_path / str(i) for i in range(3)]
    with closing(Driver(tmp_path / "drivers")) as driver:
        assert all(driver.take(place) for place in places)
        os.utime(driver._file, (12345, 12345))
        assert {(place / "lease.0").stat().st_mtime for place in places} == {12345}


@looks_up_processes
def test_files_of_dead_drivers_are_cleared_away(tmp_path: Path) -> None:
    dead_driver(tmp_path / "drivers", tmp_path / "run")
    with closing(Driver(tmp_path / "drivers")):
        assert len(list((tmp_path / "drivers").iterdir())) == 1
    assert not list((tmp_path / "drivers").iterdir())


def test_a_closed_driver_holds_nothing(tmp_path: Path) -> None:
    with closing(Driver(tmp_path / "drivers")) as first:
        assert first.take(tmp_path / "run")
    assert not is_held(tmp_path / "run")
    with closing(Driver(tmp_path / "drivers")) as second:
        assert second.take(tmp_path / "run")


@looks_up_processes
def test_a_lease_below_one_that_is_held_is_not_taken(tmp_path: Path) -> None:
    place = tmp_path / "run"
    dead_driver(tmp_path / "drivers", place)
    with closing(Driver(tmp_path / "drivers")) as first, closing(Driver(tmp_path / "drivers")) as second:
        assert first.take(place)
        (place / "lease.0").unlink()  # its holder, taken for dead, came back and was done with it
        assert not second.take(place)


def test_a_driver_whose_file_was_removed_says_so(tmp_path: Path) -> None:
    with closing(Driver(tmp_path / "drivers")) as driver:
        driver._file.unlink()
        with pytest.raises(SpaqlError, match="was removed"):
            driver.take(tmp_path / "run")


@pytest.mark.long
def test_folders_that_others_remove_are_made_again(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    drivers = [context.Process(target=take_and_tidy, args=(str(tmp_path), 2000)) for _ in range(3)]
    for process in drivers:
        process.start()
    for process in drivers:
        process.join(60)
    assert [process.exitcode for process in drivers] == [0, 0, 0]


def test_many_drivers_at_once_share_the_leases_of_the_dead(tmp_path: Path) -> None:
    for i in range(0, 200, 4):
        (tmp_path / str(i)).mkdir()
        (tmp_path / str(i) / "lease.0").write_text('{"machine": "gone", "pid": 1, "started": "0"}')
        os.utime(tmp_path / str(i) / "lease.0", (0, 0))
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


@pytest.fixture
def _without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(leases.os, "link", refuse)


@pytest.mark.usefixtures("_without_links")
def test_leases_need_no_hard_links(tmp_path: Path) -> None:
    place = tmp_path / "run"
    with closing(Driver(tmp_path / "drivers")) as first, closing(Driver(tmp_path / "drivers")) as second:
        assert first.take(place)
        assert (place / "lease.0").is_dir()
        assert is_held(place)
        assert not second.take(place)
        second.release(place)  # which it does not have
        assert not second.take(place)
        first.release(place)
        assert not is_held(place)
        assert not list(place.iterdir())
        assert second.take(place)
    assert not is_held(place)


@pytest.mark.usefixtures("_without_links")
def test_without_hard_links_one_touch_renews_all_leases_too(tmp_path: Path) -> None:
    places = [tmp_path / str(i) for i in range(3)]
    with closing(Driver(tmp_path / "drivers")) as far, closing(Driver(tmp_path / "drivers")) as near:
        identity = json.loads(far._file.read_text())
        far._file.write_text(json.dumps(identity | {"machine": "elsewhere"}))
        assert all(far.take(place) for place in places)
        assert not any(near.take(place) for place in places)
        os.utime(far._file, (12345, 12345))
        assert all(near.take(place) for place in places)
        assert sorted(path.name for path in places[0].iterdir()) == ["lease.0", "lease.1"]


@pytest.mark.usefixtures("_without_links")
def test_a_lease_that_is_being_made_is_held_for_a_while(tmp_path: Path) -> None:
    lease = tmp_path / "run" / "lease.0"
    lease.mkdir(parents=True)
    with closing(Driver(tmp_path / "drivers")) as driver:
        assert not driver.take(tmp_path / "run")
        os.utime(lease, (12345, 12345))
        assert driver.take(tmp_path / "run")


@pytest.mark.parametrize("links", [True, False])
def test_many_drivers_share_leases_with_and_without_links_and_proc(tmp_path: Path, links: bool) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    start = time.time() + 5
    take = take_all_elsewhere if links else take_all_without_links
    drivers = [context.Process(target=take, args=(str(tmp_path), start, results)) for _ in range(3)]
    for process in drivers:
        process.start()
    taken = [results.get(timeout=60) for _ in drivers]
    for process in drivers:
        process.kill()
        process.join()
    assert sorted(i for share in taken for i in share) == list(range(200))


@pytest.fixture
def _without_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(leases, "_PROC", tmp_path / "there is no proc")


@pytest.mark.usefixtures("_without_proc")
def test_without_proc_a_lease_expires_by_time(tmp_path: Path) -> None:
    place = tmp_path / "run"
    with closing(Driver(tmp_path / "drivers")) as first, closing(Driver(tmp_path / "drivers")) as second:
        assert first.take(place)
        assert not second.take(place)
        long_ago = time.time() - 100
        os.utime(first._file, (long_ago, long_ago))
        assert second.take(place)


@pytest.mark.usefixtures("_without_proc")
def test_without_proc_a_file_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    with closing(Driver(tmp_path / "drivers")) as first:
        name = first._file.name
        busy = first._file.with_name(f".{name}.1.00000000")
        busy.touch()
        with closing(Driver(tmp_path / "drivers")):
            assert busy.exists()
        os.utime(busy, (12345, 12345))
        with closing(Driver(tmp_path / "drivers")):
            assert not busy.exists()
