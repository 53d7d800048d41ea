"""Model files of every release so far load, and act as they did, bit for bit."""

import hashlib
import json
import runpy
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import spaql
from spaql import archive
from spaql.agents import agent_types

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests" / "golden").glob("*/*.spaql"))
ACTED = runpy.run_path(str(ROOT / "tests" / "golden" / "make.py"))["acted"]
SCHEMA = json.loads((ROOT / "docs" / "model-file.schema.json").read_text())


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def test_every_algorithm_has_a_golden_file() -> None:
    kinds = {data.get("algorithm", data["kind"]) for data in (archive.load(path).data for path in FILES)}
    shipped = {name for name, agent in agent_types().items() if agent.__module__ == "spaql.agents.registry"}
    assert kinds == shipped | {"controller"}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_golden_file_acts_as_it_did(path: Path, tmp_path: Path) -> None:
    model = spaql.load(path)
    with np.load(path.with_suffix(".npz")) as kept:
        actions = ACTED(model.policy, kept["observations"], kept["steps"])
        assert actions.dtype == kept["actions"].dtype
        assert actions.tobytes() == kept["actions"].tobytes()
    if isinstance(model, spaql.Agent):
        model.learn(iterations=1, progress_bar=False)
        model.save(tmp_path / "on.spaql")
        assert spaql.load(tmp_path / "on.spaql").iterations == model.iterations


@pytest.mark.parametrize("path", FILES, ids=name)
def test_golden_files_are_as_the_published_schema_says(path: Path) -> None:
    content = path.read_bytes()
    assert content[:8] == b"spaql\0\0\1"
    assert content[8:40] == hashlib.sha256(content[40:]).digest()
    header = json.loads(content[48 : 48 + int.from_bytes(content[40:48], "little")])
    data = json.loads(header["__metadata__"]["spaql"])
    jsonschema.validate(data, SCHEMA)
    for name in data.keys() - {"memory"}:  # the schema can say no, but for what most controllers lack
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({key: value for key, value in data.items() if key != name}, SCHEMA)
    assert set(archive.loads(content).arrays) == set(header) - {"__metadata__"}
