"""Export targets of the user's own, found by MODULE:NAME, and compared as the shipped ones are."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import spaql
from spaql.cli import main

MODULE = """
import spaql


class Listing(spaql.export.Target):
    name, suffix = "Listing", ".txt"
    wrong = False

    def text(self, source):
        return repr(source.program.statements)

    def player(self, source, folder):
        assert (folder / f"{source.name}.txt").read_text() == self.text(source)

        def play(samples):
            wanted = source.machine.wanted(samples[:, 1:])
            return wanted + self.wrong

        return play

    def tool(self):
        return "a loop"


class Faulty(Listing):
    wrong = True


made = Listing()
nothing = 3
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> spaql.Controller:
    (tmp_path / "own_formats.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=2, seed=1).learn(
        iterations=5, progress_bar=False
    )
    agent.save(tmp_path / "agent.spaql")
    return spaql.controller_of(agent)


@pytest.mark.parametrize("name", ["own_formats:Listing", "own_formats:made"])
def test_it_is_found_written_and_compared(name: str, tree: spaql.Controller) -> None:
    exporter, suffix = spaql.export.find_exporter(name)
    proof = exporter(tree, f"controller{suffix}", points=50)
    assert (proof.target, proof.tool, proof.points["random points"]) == ("Listing", "a loop", 50)
    words = ["export", "agent.spaql", "--to", name, "--points", "50", "--out", "code", "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["files"].keys() == {"controller.txt"}
    assert Path("code/controller.txt").read_bytes() == Path("controller.txt").read_bytes()


def test_a_fault_of_it_is_found_and_nothing_is_written(tree: spaql.Controller) -> None:
    exporter, suffix = spaql.export.find_exporter("own_formats:Faulty")
    with pytest.raises(spaql.export.EquivalenceError, match="The exported Listing differs from the policy"):
        exporter(tree, f"controller{suffix}", points=10)
    assert not Path("controller.txt").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("jso", "did you mean json"),
        ("no_such:Nodes", "Cannot import no_such, which is to define Nodes"),
        ("own_formats:nothing", r"is not a subclass of spaql\.export\.Target"),
        ("own_formats:Missing", r"is not a subclass of spaql\.export\.Target"),
    ],
)
def test_what_is_no_target_is_refused(name: str, said: str, tree: spaql.Controller) -> None:
    with pytest.raises(spaql.SettingError, match=said):
        spaql.export.find_exporter(name)
    done = CliRunner().invoke(main, ["export", "agent.spaql", "--to", name, "--out", "code"])
    assert done.exit_code in (1, 2)
    assert not Path("code").exists()
