"""The command line, run in process; `test_installed.py` runs it as a user does."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import spaql
from spaql.cli import main
from spaql.controllers import Controller


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def spaql_command(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == code, result.output
    return result


QUICK = ("--algo", "spaql", "--iterations", "3", "--rollouts", "2", "--seed", "0")


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run that no test changes."""
    folder = str(tmp_path_factory.mktemp("quick") / "run")
    spaql_command("train", "cartpole200", *QUICK, "--quiet", "--out", folder)
    return folder


def test_train_leaves_a_run_folder() -> None:
    out = spaql_command("train", "cartpole200", *QUICK, "--algo", "spaql-ts", "--out", "run").stdout
    assert "fresh return" in out
    assert "Next: spaql show run" in out
    assert sorted(p.name for p in Path("run").iterdir()) == ["history.csv", "policy.spaql", "settings.json"]
    settings = json.loads(Path("run/settings.json").read_text())
    assert settings["settings"]["metric"] == "euclidean"
    assert settings["iterations"] == 3
    assert len(Path("run/history.csv").read_text().splitlines()) == 5
    assert isinstance(spaql.load("run"), spaql.SPAQLTS)


def test_train_by_the_text_of_the_paper() -> None:
    """A run says by which rules it was trained, and goes on by no others."""
    words = ("train", "cartpole200", *QUICK, "--algo", "spaql-ts", "--out", "run")
    spaql_command(*words, "--rules", "text")
    settings = json.loads(Path("run/settings.json").read_text())["settings"]
    assert (settings["rules"], settings["metric"]) == ("text", "infinity")
    assert "has rules text, not authors" in spaql_command(*words, "--resume", code=1).stderr
    wrong = spaql_command(*words, "--rules", "txt", code=2).stderr
    assert "'txt' is not a valid choice: did you mean text?" in wrong


def test_train_as_json_and_the_default_folder() -> None:
    data = json.loads(spaql_command("train", "Pendulum-v1", *QUICK, "--levels", "5", "--json").stdout)
    assert Path(data["run"]) == Path("runs/Pendulum-v1/spaql/seed=0")
    assert data["training_steps"] == 600
    assert data["interactions"] == 600 + 4 * 2 * 200
    assert data["fresh_return"] < 0


@pytest.mark.filterwarnings("always::spaql.errors.SpaqlWarning")
def test_a_run_of_an_id_without_a_version_can_be_evaluated() -> None:
    trained = spaql_command("train", "CartPole", *QUICK, "--quiet")
    assert trained.stderr == "Warning: CartPole has no version: CartPole-v1 is used, as by gymnasium.make.\n"
    assert "return" in spaql_command("evaluate", "runs/CartPole-v1/spaql/seed=0", "--episodes", "5").stdout


@pytest.mark.parametrize("budget", [("--steps", "300"), ("--iterations", "3")])
def test_plantree_learns_unless_another_algorithm_is_named(budget: tuple[str, str]) -> None:
    words = ("train", "cartpole200", *budget, "--effort", "0.02", "--seed", "0", "--json")
    data = json.loads(spaql_command(*words).stdout)
    assert Path(data["run"]) == Path("runs/cartpole200/plantree/seed=0")
    assert data["interactions"] == data["training_steps"]
    assert data["interactions" if budget[0] == "--steps" else "iteration"] == int(budget[1])


def test_the_best_return_seen_is_of_whole_episodes() -> None:
    words = ("train", "MountainCar-v0", "--effort", "0.02", "--seed", "0", "--steps")
    trained = spaql_command(*words, "250", "--out", "a")
    assert "best seen     -200.0  (the best of 1 episode: biased upwards)" in trained.stdout
    assert "iteration 2: cut by the budget  best -200.0" in trained.stderr
    assert (
        "best seen     none  (the budget ended within the first episode)"
        in spaql_command(*words, "50", "--quiet", "--out", "b").stdout
    )
    assert (
        json.loads(spaql_command(*words, "50", "--quiet", "--out", "c", "--json").stdout)["best_return"]
        is None
    )


def test_progress_is_lines_where_there_is_no_terminal() -> None:
    words = ("train", "cartpole200", "--algo", "spaql", "--steps", "100", "--rollouts", "2")
    assert "iteration 0: return" in spaql_command(*words, "--out", "a").stderr
    assert spaql_command(*words, "--out", "b", "--quiet").stderr == ""


def test_evaluate() -> None:
    spaql_command("train", "cartpole200", *QUICK, "--quiet", "--out", "run")
    text = spaql_command("evaluate", "run", "--episodes", "30").stdout
    assert text.count(" steps from [") == 5
    data = json.loads(spaql_command("evaluate", "run/policy.spaql", "--episodes", "120", "--json").stdout)
    assert data["episodes"] == 120
    assert data["worst"][0]["return"] <= data["quantiles"]["0.05"] <= data["mean"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("train", "CartPol-v1"), 1, "did you mean CartPole-v1?"),
        (("train", "cartpole20"), 1, "did you mean cartpole200?"),
        (("train", "cartpole200", "--algo", "spaq"), 2, "did you mean spaql?"),
        (("train", "cartpole200", "--scalin", "1"), 2, "--scaling"),
        (("train", "MountainCar-v0", "--algo", "spaql-ts"), 1, "regulates to a reference"),
        (("train", "cartpole200", "--algo", "aql", "--metric", "infinity"), 1, "aql has no setting 'metric'"),
        (("train", "cartpole200", "--algo", "spaql", "--rollouts", "0"), 1, "at least 1"),
        (("train", "cartpole200", "--reference", "a,b"), 2, "no list of numbers"),
        (("train", "cartpole200", "--scaling", "4"), 1, "leave out --scaling, or give --algo aql or spaql"),
        (("train", "cartpole200", "--iterations", "3", "--steps", "9"), 2, "not both"),
        (("train", "cartpole200", "--steps", "5e3"), 2, "not a valid integer"),
        (("train", "cartpole200", "--steps", "many"), 2, "not a valid integer"),
        (("train", "cartpole200", "--step", "5"), 2, "--steps"),
        (("train", "pendulum5"), 1, "--algo spaql"),
        (("train", "MountainCar-v0", "--algo", "spaql-ts"), 1, "--reference"),
        (("evaluate", "nowhere"), 1, "nowhere does not exist"),
        (("evaluat", "nowhere"), 2, "did you mean evaluate?"),
    ],
)
def test_errors_are_sentences(words: tuple[str, ...], code: int, message: str) -> None:
    result = spaql_command(*words, code=code)
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_run_is_never_overwritten() -> None:
    spaql_command("train", "cartpole200", *QUICK, "--quiet", "--out", "run")
    assert "--out" in spaql_command("train", "cartpole200", *QUICK, "--out", "run", code=1).stderr


def test_help_of_every_command() -> None:
    assert "Getting started" in spaql_command("--help").stdout
    for command in main.list_commands(click.Context(main)):
        assert command in spaql_command("--help-all").stdout
        shown = spaql_command(command, "--help").stdout
        assert "spaql " in shown.split("Options:")[0].split("\n", 1)[1], f"{command} shows no example"
        assert max(map(len, shown.splitlines())) <= 80, f"the help of {command} is too wide"


def test_show_prints_the_rules() -> None:
    spaql_command("train", "cartpole200", *QUICK, "--out", "run")
    shown = spaql_command("show", "run", "--digits", "3").stdout
    assert shown.startswith("# cartpole200, spaql: ")
    assert "push left" in shown
    size = json.loads(spaql_command("show", "run", "--json").stdout)
    assert size["leaves"] == spaql.controller_of(spaql.load("run")).n_leaves
    assert "leave the step out" in spaql_command("show", "run", "--step", "0", code=1).output
    spaql_command("train", "cartpole200", *QUICK, "--algo", "aql", "--out", "varying")
    assert spaql_command("show", "varying", "--step", "0").stdout


def test_one_is_said_as_one() -> None:
    quick = ("--algo", "plantree", "--iterations", "1", "--effort", "0.01", "--seed", "0")
    told = spaql_command("train", "cartpole200", *quick, "--out", "run").stdout
    assert "the best of 1 episode:" in told
    problem = spaql.make_problem("cartpole200")
    spaces = {"observation_space": problem.states.space, "action_space": problem.actions.space}
    tree = Controller(laws=[0], **spaces)
    assert repr(tree) == "Controller(1 leaf, depth 0)"
    spaql.Design(tree, problem).save("one.spaql")
    assert ": 1 leaf, the fewest" in spaql_command("show", "one.spaql").stdout
    assert "(1 episode)" in spaql_command("evaluate", "one.spaql", "--episodes", "1").stdout
    spaql_command("export", "one.spaql", "--to", "python", "--out", "out", "--points", "100")
    assert "controller.py: 1 leaf, 0 questions at most." in Path("out/controller.py").read_text()


def test_simplify_edit_and_show_go_on_from_a_controller() -> None:
    spaql_command(
        "train", "cartpole200", "--algo", "spaql-ts", "--rollouts", "5", "--iterations", "20", "--seed", "1",
        "--out", "cart", "--quiet",
    )  # fmt: skip
    curve = spaql_command(
        "simplify", "cart", "--episodes", "20", "--max-leaves", "99", "--out", "small.spaql", "--json"
    )
    assert sum(row["chosen"] for row in json.loads(curve.stdout)["trees"]) == 1
    unsaved = spaql_command("simplify", "cart", "--episodes", "5", "--tolerance", "0.1").stdout
    assert unsaved.count("<- chosen") == 1
    assert "Chosen: the smallest within " in unsaved
    assert "(--tolerance 0.1). To save it, give --out" in unsaved
    assert "# leaf 1" in spaql_command("show", "small.spaql", "--numbers").stdout
    said = spaql_command(
        "edit", "small.spaql", "--leaf", "1", "--do", "push right", "--lock", "--out", "new.spaql"
    ).stdout
    assert [line.split()[0] for line in said.splitlines()] == ["before", "after", "Saved"]
    assert (
        json.loads(spaql_command("evaluate", "new.spaql", "--episodes", "5", "--json").stdout)["episodes"]
        == 5
    )
    assert "instead" in spaql_command("show", "new.spaql", "--at", "0,0,0.1,0").stdout
    assert "Give --do" in spaql_command("edit", "cart", "--leaf", "1", "--out", "x.spaql", code=2).stderr


def test_the_run_that_was_meant_is_named() -> None:
    spaql_command("train", "cartpole200", *QUICK, "--quiet", "--out", "runs/swing-up")
    said = spaql_command("show", "runs/swingup", code=1).stderr
    meant = Path("runs/swing-up")
    assert said == f"Error: {Path('runs/swingup')} does not exist: did you mean {meant}?\n"
    assert (
        f"runs is not a run folder: known runs are {meant}." in spaql_command("show", "runs", code=1).stderr
    )
    Path("runs/swing-up/policy.spaql").write_bytes(b"spaql" + bytes(99))
    said = spaql_command("show", "runs/swing-up", code=1).stderr
    assert f"Cannot read {meant / 'policy.spaql'}." in said


def test_a_controller_says_what_was_done_by_hand() -> None:
    spaql_command("train", "cartpole200", *QUICK, "--quiet", "--out", "run")
    spaql_command("edit", "run", "--leaf", "1", "--do", "push left", "--lock", "--out", "new.spaql")
    lines = spaql_command("show", "new.spaql", "--digits", "3").stdout.splitlines()
    assert lines[1] == "# made from run, leaf 1 set by hand to push left"
    assert lines[2].startswith("# locked: ")
    assert lines[2].endswith(": push left")
    assert json.loads(spaql_command("show", "new.spaql", "--json").stdout)["origin"]["lock"] is True


def test_a_tree_is_drawn_as_what_it_has() -> None:
    pytest.importorskip("matplotlib")
    plantree = str(Path(__file__).parents[1] / "golden" / "0.1" / "plantree-cartpole.spaql")
    for kind in ("value", "balls"):
        said = spaql_command("draw", plantree, kind, "--x", "2", "--y", "3", code=1).stderr
        assert said == (
            f"Error: Cannot draw {kind}: plantree has no partition. Draw one of tree, map, phase, "
            "counterexample.\n"
        )


def test_draw_every_kind() -> None:
    pytest.importorskip("matplotlib")
    spaql_command("train", "cartpole200", *QUICK, "--quiet", "--out", "run")
    few = ("--episodes", "2")
    assert spaql_command("draw", "run", "tree").stdout == "tree.svg\n"
    assert "push left" in Path("tree.svg").read_text()
    for kind in ("map", "value", "balls", "phase"):
        spaql_command(
            "draw",
            "run",
            kind,
            "--x",
            "pole angle",
            "--y",
            "3:-2:2",
            "--fix",
            "0=0",
            "--fix",
            "cart speed=0",
            *few,
        )
    kinds = ("balls", "map", "phase", "tree", "value")
    made = {path.name for path in Path().iterdir() if path.is_file()}
    assert made == {f"{kind}.svg" for kind in kinds}
    assert "cart speed 0 m/s" in Path("map.svg").read_text()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("map",), 2, "give --x and --y, out of cart position [m], cart speed [m/s]"),
        (("map", "--x", "pole", "--y", "1"), 1, "There is no observation 'pole'"),
        (("map", "--x", "0:a:b", "--y", "1"), 2, "pole angle:-0.2:0.2"),
        (("map", "--x", "0", "--y", "1", "--fix", "2"), 2, "cart speed=0"),
        (
            ("tree", "--x", "0", "--episodes", "2"),
            2,
            "tree takes --step and --out: leave out --x and --episodes",
        ),
        (("map", "--x", "0", "--y", "1", "--beside", "pid"), 2, "--episodes and --out: leave out --beside."),
        (("counterexample", "--step", "1"), 2, "counterexample takes --out: leave out --step."),
        (("tree", "--out", "tree.jpg"), 1, "ends in no format of pictures"),
        (("picture",), 2, "'picture' is not a valid choice"),
    ],
)
def test_errors_of_draw_are_sentences(quick: str, words: tuple[str, ...], code: int, message: str) -> None:
    pytest.importorskip("matplotlib")
    assert message in " ".join(spaql_command("draw", quick, *words, code=code).stderr.split())


def test_numbers_that_are_out_of_range_are_refused_and_nothing_is_written() -> None:
    spaql_command("train", "cartpole200", *QUICK, "--quiet", "--out", "run")
    for words, message in (
        (("show", "run", "--digits", "-1"), "digits is -1, and must be a whole number, at least 1"),
        (
            ("simplify", "run", "--episodes", "2", "--tolerance", "nan"),
            "--tolerance is nan, and must be a number",
        ),
        (
            ("simplify", "run", "--episodes", "2", "--tolerance", "-1"),
            "--tolerance is -1.0, and must be at least 0",
        ),
        (("stress", "run", "--episodes", "4", "--worst", "-1"), "must be a whole number, at least 0"),
        (("stress", "run", "--episodes", "4", "--success", "nan"), "--success is nan, and must be a number"),
        (("edit", "run", "--leaf", "1", "--lock", "--episodes", "0", "--out", "e.spaql"), "episodes is 0"),
    ):
        assert message in spaql_command(*words, code=1).stderr
    assert not Path("e.spaql").exists()


def test_a_partition_of_many_leaves_is_to_be_simplified_before_it_is_improved() -> None:
    words = ("train", "pendulum", "--algo", "spaql", "--iterations", "60", "--rollouts", "2", "--seed", "0")
    spaql_command(*words, "--quiet", "--out", "run")
    assert spaql.controller_of("run", minimise=False).n_leaves > 64
    refused = spaql_command("improve", "run", "--steps", "2000", "--quiet", "--out", "better", code=1)
    assert "`spaql simplify run --max-leaves 64 --out small.spaql`" in refused.stderr
    assert not Path("better").exists()
