"""Export targets of the user's own, found by MODULE:NAME, and compared as the shipped ones are."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import spaql
from feature_controllers import two_leaf_pi
from spaql.cli import main

MODULE = """
import json
import numpy as np
import spaql


class Nodes(spaql.export.Target):
    name, suffix = "Nodes", ".nodes"
    wrong = False

    def write(self, controller, name):
        tree = controller.tree
        nodes = [
            [int(tree.feature[i]), float(tree.threshold[i]), int(tree.left[i]), int(tree.right[i])]
            + [controller.leaf_value(int(tree.leaf[i]))[0] if tree.feature[i] < 0 else None]
            for i in range(tree.n_nodes)
        ]
        return {f"{name}.nodes": json.dumps([controller.safe[0], nodes]).encode()}

    def load(self, controller, files, name, folder):
        safe, nodes = json.loads(files[f"{name}.nodes"])

        def act(x):
            if np.isnan(x).any():
                return safe
            node = nodes[0]
            while node[0] >= 0:
                node = nodes[node[2] if x[node[0]] < node[1] else node[3]]
            return node[4] + self.wrong

        return lambda inputs: np.array([[act(x)] for x in inputs])

    def tool(self):
        return "a loop"


class Faulty(Nodes):
    wrong = True


made = Nodes()
nothing = 3
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> spaql.RuleTree:
    (tmp_path / "own_formats.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=2, seed=1).learn(
        iterations=5, progress_bar=False
    )
    agent.save(tmp_path / "agent.spaql")
    return spaql.rule_tree(agent)


@pytest.mark.parametrize("name", ["own_formats:Nodes", "own_formats:made"])
def test_it_is_found_written_and_compared(name: str, tree: spaql.RuleTree) -> None:
    exporter, suffix = spaql.export.find_exporter(name)
    proof = exporter(tree, f"controller{suffix}", points=50)
    assert (proof.target, proof.tool, proof.points["random points"]) == ("Nodes", "a loop", 50)
    words = ["export", "agent.spaql", "--to", name, "--points", "50", "--out", "code", "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["files"].keys() == {"controller.nodes"}
    assert Path("code/controller.nodes").read_bytes() == Path("controller.nodes").read_bytes()
    refused = CliRunner().invoke(main, [*words, "--form", "rules"])
    assert "There is no --form for" in refused.output
    with pytest.raises(spaql.SettingError, match="Nodes has no state"):
        exporter(two_leaf_pi(), f"controller{suffix}")


def test_a_fault_of_it_is_found_and_nothing_is_written(tree: spaql.RuleTree) -> None:
    exporter, suffix = spaql.export.find_exporter("own_formats:Faulty")
    with pytest.raises(spaql.export.EquivalenceError, match="The exported Nodes differs from the policy"):
        exporter(tree, f"controller{suffix}", points=10)
    assert not Path("controller.nodes").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("jso", "did you mean json"),
        ("no_such:Nodes", "Cannot import no_such, which is to define Nodes"),
        ("own_formats:nothing", r"is not a subclass of spaql\.export\.Target"),
        ("own_formats:Missing", r"is not a subclass of spaql\.export\.Target"),
    ],
)
def test_what_is_no_target_is_refused(name: str, said: str, tree: spaql.RuleTree) -> None:
    with pytest.raises(spaql.SettingError, match=said):
        spaql.export.find_exporter(name)
    done = CliRunner().invoke(main, ["export", "agent.spaql", "--to", name, "--out", "code"])
    assert done.exit_code in (1, 2)
    assert not Path("code").exists()
