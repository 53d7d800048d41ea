"""The chain of hashes from the plant to exported files: every change is found, at the link that it is in."""

import dataclasses
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import spaql
import spaql.export
from fmus import COST, TANK, tank_fmu
from spaql import ArchiveError
from spaql.agents.origin import origin_of
from spaql.cli import main
from spaql.export import chain_of, check_chain
from spaql.policy import Constants
from spaql.problems.plant_hash import equations_hash

LINKS = ["plant", "settings", "model file", "policy", "export", "controller.h", "controller.c"]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an agent and its export in `out`."""
    folder = tmp_path_factory.mktemp("chain")
    agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=2, seed=1)
    agent.learn(iterations=5, progress_bar=False).save(folder / "agent.spaql")
    words = ["export", str(folder / "agent.spaql"), "--to", "c", "--out", str(folder / "out")]
    done = CliRunner().invoke(main, [*words, "--points", "100", "--chain", "--json"])
    assert done.exit_code == 0, done.output
    (folder / "last").write_text(json.loads(done.stdout)["last_link"])
    return folder


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    shutil.copytree(exported, tmp_path, dirs_exist_ok=True)
    return tmp_path


def outcomes(folder: Path, *words: str) -> tuple[int, dict[str, str]]:
    done = CliRunner().invoke(
        main, ["chain", str(folder / "out" / "controller_chain.json"), "--json", *words]
    )
    return done.exit_code, {row["name"]: row["outcome"] for row in json.loads(done.stdout)["links"]}


def with_run(folder: Path) -> tuple[str, str]:
    return "--run", str(folder / "agent.spaql")


def changed(found: dict[str, str]) -> list[str]:
    return [name for name, outcome in found.items() if outcome == "changed"]


def test_what_has_not_changed_is_found_to_be_so(folder: Path) -> None:
    last = (folder / "last").read_text()
    assert outcomes(folder, *with_run(folder), "--last", last) == (0, dict.fromkeys(LINKS, "unchanged"))
    unknown = dict.fromkeys(("model file", "policy"), "not compared")
    assert outcomes(folder) == (0, dict.fromkeys(LINKS, "unchanged") | unknown)
    data = json.loads((folder / "out" / "controller_chain.json").read_bytes())
    plant, settings = (row["content"] for row in data["links"][:2])
    dynamics = spaql.make_problem("cartpole200").dynamics
    equations = dict(equations_hash(dynamics))
    assert plant == {"runs_on": f"the compiled dynamics {dynamics.id}", "equations": equations}
    assert (settings["algorithm"], settings["seed"], settings["settings"]["scaling"]) == ("spaql-ts", 1, 20.0)


def test_a_changed_byte_of_a_file_is_found_at_its_link(folder: Path) -> None:
    for name in ("controller.h", "controller.c"):
        path = folder / "out" / name
        content = path.read_bytes()
        for place in (0, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            code, found = outcomes(folder, *with_run(folder))
            assert (code, changed(found)) == (1, [name])
        path.unlink()
        assert changed(outcomes(folder)[1]) == [name]
        path.write_bytes(content)


def test_a_changed_byte_of_the_chain_is_found_at_its_link(folder: Path) -> None:
    path = folder / "out" / "controller_chain.json"
    content = path.read_bytes()
    begins = [content.rindex(b"{", 0, content.index(b'"name": "%s"' % name.encode())) for name in LINKS]
    found, unreadable = [], 0
    for place in np.random.default_rng(0).choice(len(content), 500, replace=False).tolist():
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        try:
            first = next(i for i, one in enumerate(check_chain(path)) if one.outcome == "changed")
        except ArchiveError:
            unreadable += 1
            continue
        # What is not within the values of a link comes after all of them: the text of the file.
        if first < len(LINKS):
            assert first == sum(begin <= place for begin in begins) - 1
        else:
            assert json.loads(path.read_bytes())["links"] == json.loads(content)["links"]
        found.append(first)
    assert set(found) == {*range(len(LINKS)), len(LINKS)}
    assert unreadable < 300


def constant(problem: spaql.Problem, action: float) -> spaql.Controller:
    """Return a controller that always does the same."""
    leaves = Constants(np.array([[action]]))
    spaces = problem.states.space, problem.actions.space
    return spaql.Controller(spaql.RuleTree([-1], [0.0], [-1], [-1], [0], leaves, *spaces), problem)


def plant(gain: float) -> spaql.Problem:
    def start(rng):
        return (rng.uniform(-1.0, 1.0),)

    def step(state, action):
        x = state[0] + gain * action[0]
        return (x,), -x * x, False

    ends = {"observations": {"x": (-5.0, 5.0)}, "actions": {"u": (-1.0, 1.0)}}
    return spaql.make_problem(
        spaql.Dynamics(id="test/Chained-v0", start=start, step=step, horizon=10, **ends)
    )


def test_another_plant_settings_model_or_policy_is_found(folder: Path) -> None:
    code, found = outcomes(folder, *with_run(folder), "--last", "0")
    assert (code, changed(found)) == (1, ["last link"])
    other = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=2, seed=2)
    other.learn(iterations=5, progress_bar=False).save(folder / "other.spaql")
    code, found = outcomes(folder, "--run", str(folder / "other.spaql"))
    assert (code, changed(found)[:2], found["plant"]) == (1, ["settings", "model file"], "unchanged")


def test_each_link_before_the_export_stands_for_one_thing(tmp_path: Path) -> None:
    one, path = constant(plant(0.5), 0.25), tmp_path / "one.spaql"
    one.save(path)
    found = spaql.export.c(one.tree, tmp_path / "controller.c", points=10)
    content, _ = chain_of(origin_of(one, path, one.tree), found)
    (tmp_path / "controller_chain.json").write_bytes(content)

    def differs(source: spaql.Controller, file: Path, tree: spaql.RuleTree) -> list[str]:
        links = check_chain(tmp_path / "controller_chain.json", origin_of(source, file, tree))
        return changed({link.name: link.outcome for link in links})

    assert differs(one, path, one.tree) == []
    assert differs(constant(plant(0.50001), 0.25), path, one.tree) == ["plant"]
    assert differs(one, path, constant(plant(0.5), 0.250001).tree) == ["policy"]
    dataclasses.replace(one, origin={"from": "another"}).save(tmp_path / "other.spaql")
    assert differs(one, tmp_path / "other.spaql", one.tree) == ["settings", "model file"]


def test_a_chain_that_is_written_anew_has_another_last_link(folder: Path) -> None:
    path = folder / "out" / "controller_chain.json"
    data = json.loads(path.read_bytes())
    data["links"].pop()
    path.write_text(json.dumps(data, indent=2) + "\n")
    assert outcomes(folder)[0] == 0  # what is left is a chain
    code, found = outcomes(folder, "--last", (folder / "last").read_text())
    assert (code, changed(found)) == (1, ["last link"])


def test_the_hash_of_a_link_needs_no_spaql(folder: Path) -> None:
    """By the words in the file alone."""
    code = """
import hashlib, json, sys
def sha(content): return hashlib.sha256(content).hexdigest()
previous = ""
for row in json.load(open(sys.argv[1]))["links"]:
    if row["kind"] == "data":
        text = json.dumps(row["content"], separators=(",", ":"))
        assert sha(text.encode()) == row["sha256"]
    previous = sha("".join(x + chr(10) for x in (previous, row["kind"], row["name"], row["sha256"])).encode())
    assert previous == row["link"]
print(previous)
"""
    words = [sys.executable, "-c", code, str(folder / "out" / "controller_chain.json")]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert said.strip() == (folder / "last").read_text()


def test_what_is_no_chain_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "controller_chain.json"
    for text in ("", "{}", '{"links": []}', '{"links": [1]}', '{"links": [{"kind": "file"}]}'):
        path.write_text(text)
        with pytest.raises(ArchiveError, match="chain of hashes"):
            check_chain(path)
    with pytest.raises(ArchiveError, match="Cannot read"):
        check_chain(tmp_path / "missing.json")
    row = {"kind": "file", "name": "../secret", "sha256": "", "link": ""}
    path.write_text(json.dumps({"links": [row]}))
    assert check_chain(path)[0].reason == "it is not the name of a file in this folder"


def test_the_file_of_an_fmu_is_hashed_while_it_is_there(tmp_path: Path) -> None:
    fmu = tank_fmu(tmp_path)
    options = {**TANK, "outputs": ["level"], "parameters": {"leak": 0.0}, "cost": COST}
    made = constant(spaql.make_problem(str(fmu), options=options), 0.25)
    made.save(tmp_path / "one.spaql")
    there = origin_of(made, tmp_path / "one.spaql", made.tree)[0]
    assert there.content["files"] == {fmu.name: hashlib.sha256(fmu.read_bytes()).hexdigest()}
    content, _ = chain_of([there], spaql.export.c(made.tree, tmp_path / "controller.c", points=10))
    (tmp_path / "controller_chain.json").write_bytes(content)
    fmu.rename(tmp_path / "moved.fmu")
    gone = origin_of(made, tmp_path / "one.spaql", made.tree)
    checked = check_chain(tmp_path / "controller_chain.json", gone)[0]
    assert checked.outcome == "not compared"
    assert checked.reason == f"the data are not found here: {fmu.name}"


def test_the_files_of_a_log_are_hashed_while_they_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = {
        "files": ["log.csv"],
        "rows": 1,
        "steps": 1,
        "end_reward": 0.0,
        "verdict": "supported",
        "end": None,
    }
    made = constant(dataclasses.replace(plant(0.5), env=None, dynamics=None, log=log), 0.25)
    made.save("one.spaql")
    assert "not found here: log.csv" in origin_of(made, "one.spaql", made.tree)[0].content["not_hashed"]
    Path("log.csv").write_text("x,u\n")
    there = origin_of(made, "one.spaql", made.tree)[0].content
    assert there["files"] == {"log.csv": hashlib.sha256(b"x,u\n").hexdigest()}


PLANT = """
import spaql

def start(rng):
    return (rng.uniform(-1.0, 1.0),)

def step(state, action):
    return (state[0] + 0.5 * action[0],), -state[0] * state[0], False

spaql.Dynamics(id="test/Own-v0", start=start, step=step, horizon=10, observations={"x": (-5.0, 5.0)},
               actions={"u": (-1.0, 1.0)})
"""


def test_a_plant_of_ones_own_is_compared_if_its_module_is_named(tmp_path: Path) -> None:
    """In processes of their own; the check imports nothing because a model file names it."""
    (tmp_path / "own_plant.py").write_text(PLANT)
    make = """
import numpy as np, spaql
from spaql.policy import Constants
from spaql.problems.plant_hash import equations_hash
problem = spaql.make_problem("own_plant:test/Own-v0")
spaces = problem.states.space, problem.actions.space
tree = spaql.RuleTree([-1], [0.0], [-1], [-1], [0], Constants(np.array([[0.25]])), *spaces)
spaql.Controller(tree, problem).save("one.spaql")
"""
    check = ["-m", "spaql", "chain", "out/controller_chain.json", "--run", "one.spaql"]

    def run(*words: str) -> str:
        return subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True).stdout

    run("-c", make)
    export = ["export", "one.spaql", "--to", "python", "--out", "out", "--points", "10", "--chain"]
    assert "chain   ends with" in run("-m", "spaql", *export)
    assert "not compared  plant: the module that defines the equations was not imported" in run(*check)
    named = ("--env", "own_plant:test/Own-v0")
    assert "unchanged     plant" in run(*check, *named)
    (tmp_path / "own_plant.py").write_text(PLANT.replace("0.5 *", "0.6 *"))
    assert "changed       plant: what was given differs in step" in run(*check, *named)
