import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaql
from nightly import thorough
from spaql import archive
from spaql.agents.problem_file import problem_from, problem_to

CONTENT = archive.dumps({"kind": "x", "n": [1, 2.5, None]}, {"a": np.arange(5), "b": np.ones((2, 3))})


def test_a_document_comes_back() -> None:
    document = archive.loads(CONTENT)
    assert document.data == {"kind": "x", "n": [1, 2.5, None]}
    assert document.arrays["a"].tolist() == [0, 1, 2, 3, 4]
    assert document.arrays["b"].shape == (2, 3)


def test_strided_views_are_saved_as_they_read() -> None:
    array = np.arange(12.0).reshape(3, 4)[:, ::2]
    assert archive.loads(archive.dumps({}, {"a": array})).arrays["a"].tolist() == array.tolist()


@settings(max_examples=thorough(500))
@given(st.data())
def test_a_changed_file_is_refused(data: st.DataObject) -> None:
    content = bytearray(CONTENT)
    kind = data.draw(st.sampled_from(["flip", "cut", "append", "insert"]))
    at = data.draw(st.integers(0, len(content) - 1))
    if kind == "flip":
        content[at] ^= data.draw(st.integers(1, 255))
    elif kind == "cut":
        del content[at:]
    elif kind == "append":
        content += data.draw(st.binary(min_size=1, max_size=20))
    else:
        content[at:at] = data.draw(st.binary(min_size=1, max_size=20))
    with pytest.raises(spaql.ArchiveError):
        archive.loads(bytes(content))


@pytest.mark.parametrize("body", [b"", b"\xff" * 20, b"\x02\0\0\0\0\0\0\0{}", pickle.dumps({})])
def test_a_right_hash_over_nonsense_is_refused(body: bytes) -> None:
    import hashlib

    with pytest.raises(spaql.ArchiveError):
        archive.loads(CONTENT[:8] + hashlib.sha256(body).digest() + body)


def test_other_formats_and_files_are_refused(tmp_path: Path) -> None:
    newer = bytearray(CONTENT)
    newer[7] = 9
    with pytest.raises(spaql.ArchiveError, match="update spaql"):
        archive.loads(bytes(newer))
    with pytest.raises(spaql.ArchiveError, match="not a spaql model file: give a run folder"):
        archive.loads(b"hello")
    with pytest.raises(spaql.ArchiveError, match="Cannot read"):
        spaql.load(tmp_path / "nothing.spaql")


def test_an_agent_file_that_lacks_something_is_refused(tmp_path: Path) -> None:
    agent = spaql.SPAQL("cartpole200", seed=0, rollouts=2).learn(iterations=2, progress_bar=False)
    agent.save(tmp_path / "a.spaql")
    whole = archive.load(tmp_path / "a.spaql")
    for name in whole.data:
        archive.save(tmp_path / "b.spaql", {k: v for k, v in whole.data.items() if k != name}, whole.arrays)
        with pytest.raises(spaql.ArchiveError):
            spaql.load(tmp_path / "b.spaql")
    for name in whole.arrays:
        archive.save(tmp_path / "b.spaql", whole.data, {k: v for k, v in whole.arrays.items() if k != name})
        with pytest.raises(spaql.ArchiveError):
            spaql.load(tmp_path / "b.spaql")
    for replacement in ("policy", "sarsa"):
        key = "kind" if replacement == "policy" else "algorithm"
        archive.save(tmp_path / "b.spaql", whole.data | {key: replacement}, whole.arrays)
        with pytest.raises(spaql.ArchiveError, match=replacement):
            spaql.load(tmp_path / "b.spaql")


def test_writing_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "file"
    archive.write_atomically(target, b"old")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        archive.write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_settings_are_readable_json() -> None:
    assert json.loads(CONTENT[48 : 48 + int.from_bytes(CONTENT[40:48], "little")])["__metadata__"]


def test_names_that_do_not_fit_are_refused() -> None:
    data, arrays = problem_to(spaql.make_problem("pendulum5"))
    assert problem_from(data, arrays).states.names == ("cos(angle)", "sin(angle)", "speed [rad/s]")
    assert problem_from({k: v for k, v in data.items() if k != "observations"}, arrays).states.names == ()
    for what in ("observations", "actions"):
        with pytest.raises(spaql.ArchiveError, match=f"names 2 {what}"):
            problem_from(data | {what: ["a", "b"]}, arrays)


def test_a_number_is_saved_alike_however_it_is_written(tmp_path: Path) -> None:
    for name, scaling in (("a", 20), ("b", 20.0)):
        spaql.SPAQL("cartpole200", scaling=scaling, seed=0).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_that_another_process_reads_is_replaced_when_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows refuses to replace a file that is open, for as long as it is."""
    refused = []
    replace = os.replace

    def busy(source: Path, target: Path) -> None:
        if len(refused) < 3:
            refused.append(target)
            raise PermissionError(13, "The process cannot access the file", str(target))
        replace(source, target)

    monkeypatch.setattr(archive.os, "replace", busy)
    monkeypatch.setattr(archive, "PAUSES", (0.001,) * 5)
    archive.write_atomically(tmp_path / "a", b"whole")
    assert (tmp_path / "a").read_bytes() == b"whole"
    assert len(refused) == 3
    refused.clear()
    monkeypatch.setattr(archive, "PAUSES", ())  # elsewhere a refusal is one
    with pytest.raises(PermissionError):
        archive.write_atomically(tmp_path / "b", b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
