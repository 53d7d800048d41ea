"""The hash by which a run knows a Gymnasium environment."""

import importlib
import sys
from pathlib import Path

import gymnasium
import pytest

from spaql.problems.plant_hash import environment_hash

OWN = '''
import gymnasium
class Own(gymnasium.Env):
    """{note}"""
    def step(self, action):
        return {gain} * action, 0.0, False, False, {{}}  # {remark}
'''


def hash_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, gain: float, remark: str = ""
) -> dict[str, str]:
    (folder / "own_env.py").write_text(OWN.format(gain=gain, note="Of one's own.", remark=remark))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "own_env", raising=False)
    importlib.invalidate_caches()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return dict(environment_hash(importlib.import_module("own_env").Own()))


def test_an_edited_class_has_another_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = hash_of(tmp_path, monkeypatch, gain=0.5)
    assert list(before) == ["Own"]
    assert hash_of(tmp_path, monkeypatch, gain=0.5, remark="a comment is no part of it") == before
    assert hash_of(tmp_path, monkeypatch, gain=0.9) != before


def test_installed_environments_have_none() -> None:
    assert environment_hash(gymnasium.make("FrozenLake-v1")) == {}
