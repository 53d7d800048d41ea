"""The files themselves: written or refused as wholes, and read by what they are made for."""

import json
import shutil
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium.spaces import Box, Discrete

import spaql
import spaql.export
from random_trees import random_tree
from spaql import ArchiveError, Controller, SettingError
from spaql.cli import main
from spaql.export import EXPORTERS, EquivalenceError, controller_from_json
from spaql.export.json_form import SCHEMA
from spaql.export.languages.c import C
from spaql.languages import identifiers


def tree_of(kind: str = "choices", sums: int = 0) -> Controller:
    return random_tree(np.random.default_rng(0), 3, 12, kind, sums=sums)


TREES = {
    "choices": lambda: tree_of("choices", sums=3),
    "constants": lambda: tree_of("constants"),
    "laws": lambda: tree_of("laws", sums=2),
    "switching laws": lambda: tree_of("switching laws"),
}


@pytest.mark.parametrize("kind", TREES)
def test_json_is_the_tree(kind: str, tmp_path: Path) -> None:
    tree = TREES[kind]()
    path = tmp_path / "controller.json"
    spaql.export.json(tree, path, points=100)
    data = json.loads(path.read_bytes())
    jsonschema.validate(data, json.loads(SCHEMA.read_bytes()))
    read = controller_from_json(path)
    assert (read.observations, read.actions) == (tree.observations, tree.actions)
    assert (read.observation_space, read.action_space) == (tree.observation_space, tree.action_space)
    assert np.array_equal(read.combinations, tree.combinations)
    points = np.random.default_rng(0).normal(size=(1000, 3)) * 100
    assert np.array_equal(read.act(points), tree.act(points))
    assert ("combinations" in data["arrays"]) == (len(tree.combinations) > 0)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"version": 2},
        {"arrays": {}},
        {"arrays": {"combinations": [[1.0]]}},
        {"arrays": {"laws.offset": [["-inf"] * 6] * 6}},
        {"memory": {}},
        {"features": [{"kind": "other"}]},
        {"observation_space": {"kind": "box"}},
        {"observations": ["one"]},
    ],
)
def test_damaged_json_is_an_archive_error(change: dict, tmp_path: Path) -> None:
    path = tmp_path / "controller.json"
    spaql.export.json(tree_of(), path, points=100)
    data = json.loads(path.read_bytes())
    part = data if change.keys() <= data.keys() else data["controller"]
    part |= change
    path.write_text(json.dumps(data))
    with pytest.raises(ArchiveError):
        controller_from_json(path)
    for text in ("{", "[" * 200_000):  # the second is nested too deeply to be read
        path.write_text(text)
        with pytest.raises(ArchiveError, match="not JSON"):
            controller_from_json(path)


def test_a_difference_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = C.write

    def careless(self: C, controller, name: str) -> dict[str, bytes]:
        files = honest(self, controller, name)
        return {file: content.replace(b" < ", b" <= ") for file, content in files.items()}

    monkeypatch.setattr(C, "write", careless)
    with pytest.raises(EquivalenceError, match=r"boundaries .* the policy returns \[\d.0\], and C"):
        spaql.export.c(tree_of(), tmp_path / "controller.c", points=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tree, out: spaql.export.c(tree, out / "my-tree.c"), "use letters"),
        (lambda tree, out: spaql.export.c(tree, out / "controller.txt"), "controller.c"),
        (
            lambda tree, out: spaql.export.c(tree, out / "controller.c", number="half"),
            "'double' or 'float'",
        ),
        (lambda tree, out: spaql.export.c(tree, out / "controller.c", safe_action=99), "no action 99"),
    ],
)
def test_what_cannot_be_is_refused(call, message: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=message):
        call(tree_of(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_safe_actions_of_the_wrong_form_are_refused(tmp_path: Path) -> None:
    for wrong in ([0.0, 9.0], [0.0], "stop"):
        with pytest.raises(SettingError, match="must be one finite number for each of"):
            spaql.export.c(tree_of("constants"), tmp_path / "controller.c", safe_action=wrong)


def test_shared_parts_are_written_out_only_within_reason(tmp_path: Path) -> None:
    """Sixty questions, each with both sides leading to the next one: 2^60 leaves as printed."""
    n = 60
    chain = Controller(
        feature=np.array([*(i % 2 for i in range(2 * n - 1)), -1, -1]),
        threshold=np.arange(2.0 * n + 1),
        left=np.array([*(2 * ((i + 1) // 2) + 1 for i in range(2 * n - 1)), -1, -1]),
        right=np.array([*(2 * ((i + 1) // 2) + 2 for i in range(2 * n - 1)), -1, -1]),
        leaf=np.array([-1] * (2 * n - 1) + [0, 1]),
        laws=[0, 1],
        observation_space=Box(-1, 1, (2,)),
        action_space=Discrete(2),
    )
    with pytest.raises(SettingError, match="more than the 100,000 that can be exported"):
        spaql.export.python(chain, tmp_path / "controller.py")


def test_without_a_compiler_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(spaql.export.MissingToolError, match="install gcc"):
        spaql.export.c(tree_of(), tmp_path / "controller.c")


def test_names_become_different_identifiers() -> None:
    assert identifiers(["if", "a b", "a-b", "", "Δ", "x2_a_b"], "a_b") == (
        "x0_if",
        "x1_a_b",
        "x2_a_b",
        "x3",
        "x4",
        "x5_x2_a_b",
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    words = [
        "train",
        "cartpole200",
        "--algo",
        "spaql",
        "--iterations",
        "3",
        "--rollouts",
        "2",
        "--seed",
        "0",
        "--quiet",
    ]
    assert CliRunner().invoke(main, [*words, "--out", str(folder)]).exit_code == 0
    return folder


@pytest.mark.parametrize("target", EXPORTERS)
def test_the_command(target: str, run: Path, tmp_path: Path) -> None:
    words = ["export", str(run), "--to", target, "--out", str(tmp_path), "--points", "2000"]
    result = CliRunner().invoke(main, [*words, "--json"])
    if "not installed" in result.output:
        pytest.skip(result.output)
    assert result.exit_code == 0, result.output
    proof = json.loads(result.stdout)
    assert proof["points"]["random points"] == 2000
    assert sorted(proof["files"]) == sorted(path.name for path in tmp_path.iterdir())
    file = tmp_path / f"controller{EXPORTERS[target][1]}"
    if target != "fmu":  # which holds nothing but programs
        checked = CliRunner().invoke(main, ["export", str(run), "--check", str(file)])
        assert (checked.exit_code, checked.output) == (
            0,
            f"{file} belongs to this run: the same program and plant.\n",
        )


def test_the_safe_action_may_be_given_by_its_name(run: Path, tmp_path: Path) -> None:
    tree = spaql.controller_of(spaql.load(run))
    for given in ("push right", 1, [1]):
        proof = spaql.export.python(tree, tmp_path / "controller.py", safe_action=given, points=100)
        assert proof.safe_action == (1.0,)
    words = ["export", str(run), "--to", "python", "--out", str(tmp_path), "--points", "100"]
    result = CliRunner().invoke(main, [*words, "--safe-action", "push right", "--json"])
    assert json.loads(result.output)["safe_action"] == [1.0]


def test_the_command_refuses_in_sentences(run: Path, tmp_path: Path) -> None:
    words = ["export", str(run), "--out", str(tmp_path / "out")]
    for more, message in (
        (["--to", "json", "--number", "float"], "must be 'double' for JSON"),
        (["--to", "c", "--safe-action", "a"], "There is no action 'a': there are 0 (push left), 1"),
        (["--to", "c", "--safe-action", "7"], "There is no action 7"),
        ([], "Give --to TARGET and --out FOLDER, or --check FILE."),
    ):
        result = CliRunner().invoke(main, [*words, *more])
        assert result.exit_code > 0
        assert message in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_the_header_is_for_people(tmp_path: Path) -> None:
    agent = spaql.SPAQL("pendulum5", seed=0)
    spaql.export.c(spaql.controller_of(agent), tmp_path / "swing.c", number="float", points=100)
    header = (tmp_path / "swing.h").read_text()
    assert "void swing_act(const float observation[SWING_OBSERVATIONS]," in header
    assert "observation[2]  speed [rad/s]" in header


@pytest.mark.parametrize("target", EXPORTERS)
def test_states_of_a_list(target: str, tmp_path: Path) -> None:
    """Observations may be one number of a list, and actions begin elsewhere than at 0."""
    tree = Controller(
        feature=[0, -1, 0, -1, -1],
        threshold=[3.5, 0, 5.5, 0, 0],
        left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1],
        leaf=[-1, 0, -1, 1, 0],
        laws=[-1, 1],
        observation_space=Discrete(5, start=2),
        action_space=Discrete(3, start=-1),
    )
    exporter, suffix = EXPORTERS[target]
    proof = exporter(tree, tmp_path / f"controller{suffix}", safe_action=0, points=1000)
    assert (proof.leaves, proof.depth) == (3, 2)  # of the policy, without those that guard it
    assert proof.limits == ((2.0, 6.0),)
    with pytest.raises(SettingError, match="no action 2: there are -1 "):
        exporter(tree, tmp_path / f"controller{suffix}", safe_action=2)
