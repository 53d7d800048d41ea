"""WebAssembly: what the module holds, how it is called, faults in it, and what is refused."""

import dataclasses
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import spaql
import spaql.export
from export_forms import mutant
from feature_controllers import two_leaf_pi
from random_trees import random_tree
from spaql import Controller, SettingError
from spaql.export.compilers import MissingToolError
from spaql.export.equivalence import EquivalenceError, check_equivalence
from spaql.export.machine import Machine, machine_of
from spaql.export.wasm.target import Wasm


def compared(controller: Machine, files: dict[str, bytes], folder: Path, name="controller") -> None:
    check_equivalence(Wasm(), controller, files, name, folder, 500)


def in_node(code: str, folder: Path):
    words = ["node", "--input-type=module", "--eval", code]
    return json.loads(subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout)


def test_it_is_called_as_the_javascript_module_is(tmp_path: Path) -> None:
    tree = random_tree(np.random.default_rng(1), 2, 20)
    found = spaql.export.wasm(tree, tmp_path / "valve.wasm", points=100)
    assert sorted(found.files) == ["valve.mjs", "valve.wasm"]
    code = 'import { act } from "./valve.mjs"; console.log(JSON.stringify([act([0.25, -1]), act([0.25])]))'
    # A number that is missing counts as NaN.
    assert in_node(code, tmp_path) == [tree.act(np.array([[0.25, -1.0]]))[0], 3]
    spaql.export.wasm(tree, tmp_path / "other" / "valve.wasm", points=100)
    both = [(tmp_path / folder / "valve.wasm").read_bytes() for folder in (".", "other")]
    assert both[0] == both[1]


@pytest.mark.parametrize("remembers", [False, True])
def test_a_host_needs_no_imports_and_no_loader(remembers: bool, tmp_path: Path) -> None:
    """The exports are those of the documentation: numbers at addresses, and functions without arguments."""
    given = two_leaf_pi() if remembers else random_tree(np.random.default_rng(1), 2, 5, "constants")
    spaql.export.wasm(given, tmp_path / "pump.wasm", points=100)
    found = in_node(
        """import { readFileSync } from "node:fs";
        const code = new WebAssembly.Module(readFileSync("pump.wasm"));
        const made = new WebAssembly.Instance(code).exports;
        const at = (place) => new Float64Array(made.memory.buffer, place.value, 2);
        if (made.reset) made.reset();
        at(made.observation).set([0.5, 1]);
        made.act();
        const names = WebAssembly.Module.exports(code).map((one) => one.name).sort();
        console.log(JSON.stringify([WebAssembly.Module.imports(code), names, at(made.action)[0]]));""",
        tmp_path,
    )
    if remembers:
        names = ["act", "action", "memory", "observation", "reset", "state"]
        wanted = machine_of(given).sample(np.array([[0.5, 1.0]]), given.new_memory(1))[0][0, 0]
    else:
        names = ["act", "action", "memory", "observation"]
        wanted = given.act(np.array([[0.5, 1.0]]))[0][0]
    assert found == [[], names, wanted]


def test_each_controller_has_its_own_state_which_can_be_changed(tmp_path: Path) -> None:
    """Manual mode writes the last action into the state, from which the rate limit goes on."""
    spaql.export.wasm(two_leaf_pi(), tmp_path / "pump.wasm", points=100)
    found = in_node(
        """import { Controller } from "./pump.mjs";
        const [one, other] = [new Controller(), new Controller()];
        one.act([0, 2]);
        other.state = { last_pump: 8, target_pump: 8 };
        const failed = (() => { try { other.state = { valve: 1 } } catch (error) { return `${error}` } })();
        const after = other.act([2, 0])[0];
        one.reset();
        console.log(JSON.stringify([one.state, after, Controller.sampleTime, failed]));""",
        tmp_path,
    )
    made = two_leaf_pi()
    names = found[0].keys()
    assert list(found[0].values()) == made.new_memory(1)[0].tolist()
    assert {"started", "leaf", "last_pump", "target_pump"} < names
    # The law is cut by the rate limit, 3 V/s over samples of 0.5 s.
    assert found[1:] == [6.5, 0.5, "RangeError: The controller does not remember valve."]


def test_a_tree_of_one_leaf_and_infinite_thresholds(tmp_path: Path) -> None:
    space = Box(-1.0, 1.0, (1,), np.float64)
    one = Controller(laws=[[0.1]], observation_space=space, action_space=space)
    endless = Controller(
        feature=[0, -1, -1],
        threshold=[np.inf, 0.0, 0.0],
        left=[1, -1, -1],
        right=[2, -1, -1],
        leaf=[-1, 0, 1],
        laws=[0, 1],
        observation_space=space,
        action_space=Discrete(2),
    )
    for tree in (one, endless):
        made = machine_of(tree)
        compared(made, Wasm().write(made, "controller"), tmp_path)


def test_names_that_mean_something_in_the_module(tmp_path: Path) -> None:
    """As observations, and as the name of the files."""
    tree = random_tree(np.random.default_rng(0), 3, 5, "laws", sums=1)
    made = machine_of(dataclasses.replace(tree, observations=("act", "memory */", "observation")))
    for name in ("act", "math"):
        compared(made, Wasm().write(made, name), tmp_path, name)
    with pytest.raises(SettingError, match="cannot be module"):
        Wasm().write(made, "module")


@pytest.mark.parametrize("what", ["threshold", "action"])
def test_a_change_by_one_number_is_found(what: str, tmp_path: Path) -> None:
    made = machine_of(random_tree(np.random.default_rng(7), 3, 30))
    other = mutant(made, np.random.default_rng(1), what)
    with pytest.raises(EquivalenceError, match="The exported WebAssembly differs from the policy"):
        compared(made, Wasm().write(other, "controller"), tmp_path)


def test_a_fault_in_the_state_is_found(tmp_path: Path) -> None:
    target = Wasm()
    machine = machine_of(two_leaf_pi(limit=2.5))
    files = target.write(machine, "pump") | {
        "pump.wasm": target.write(machine_of(two_leaf_pi(limit=2.6)), "pump")["pump.wasm"]
    }
    with pytest.raises(EquivalenceError, match="The first difference is at sample"):
        check_equivalence(target, machine, files, "pump", tmp_path, 20_000)


def test_what_is_no_module_is_reported(tmp_path: Path) -> None:
    made = machine_of(random_tree(np.random.default_rng(1), 2, 3))
    files = Wasm().write(made, "controller")
    with pytest.raises(spaql.SpaqlError, match=r"failed \(1\)"):
        compared(made, files | {"controller.wasm": files["controller.wasm"][:-9]}, tmp_path)


@pytest.mark.parametrize("number", ["float", "fixed"])
def test_it_has_doubles_only(number: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="number is"):
        spaql.export.wasm(two_leaf_pi(), tmp_path / "controller.wasm", number=number)
    for given in (random_tree(np.random.default_rng(1), 2, 3), two_leaf_pi()):
        if number == "fixed" and given.remembers:
            continue
        with pytest.raises(SettingError, match=f"number is '{number}', and must be 'double'"):
            spaql.export.write(Wasm(), given, tmp_path / "controller.wasm", number=number)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("tool", ["clang", "wasm-ld", "node"])
def test_a_missing_tool_is_named(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for one in {"clang", "wasm-ld", "node"} - {tool}:
        (tools / one).symlink_to(shutil.which(one))
    monkeypatch.setenv("PATH", str(tools))
    tree = random_tree(np.random.default_rng(1), 2, 5)
    with pytest.raises(MissingToolError, match=f"{tool} is not installed"):
        spaql.export.wasm(tree, tmp_path / "out" / "controller.wasm")
    assert not (tmp_path / "out").exists()
