"""`spaql paper --quick` goes through every stage, and a damaged study heals to the same bytes."""

import dataclasses
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from spaql.cli import main
from spaql.plugins.paper.criteria import VERDICTS
from spaql.plugins.paper.study import ALGORITHMS, FULL, QUICK, SCALINGS, long_runs, scaling_runs, trpo_runs
from spaql.plugins.sweeps.store import RunStore
from spaql.plugins.sweeps.sweeps import sweep
from spaql.tables import comma_separated, latex, markdown

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")


def spaql_paper(out: Path, *options: str) -> str:
    command = [sys.executable, "-m", "spaql", "paper", "--quick", "--quiet", "--out", str(out), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper")
    claims = json.loads(spaql_paper(folder, "--json"))["claims"]
    assert len(claims) == 35
    assert {claim["verdict"] for claim in claims} <= set(VERDICTS)
    assert all(claim["criterion"] for claim in claims)
    return folder


def test_the_studies_are_the_papers() -> None:
    short = scaling_runs(FULL)
    long = long_runs(FULL)
    trpo = trpo_runs(FULL)
    assert len(short) == 3 * 13 * len(ALGORITHMS) * 20
    assert len(long) == 3 * 3 * 20
    assert len(trpo) == 2 * 20
    assert {run.settings["scaling"] for run in short} == set(SCALINGS)
    assert {run.iterations for run in long} == {2000}
    assert {run.settings["rollouts"] for run in long if run.problem == "cartpole200"} == {100}


def test_only_the_rules_of_the_text_are_spelled() -> None:
    """So that the studies of the authors' rules keep their bytes."""
    text = dataclasses.replace(FULL, rules="text")
    for study in (scaling_runs, long_runs):
        for ours, other in zip(study(FULL), study(text), strict=True):
            assert other.id == ours.id
            assert other.settings == {**ours.settings, "rules": "text"}
            assert "rules" not in ours.settings
    assert trpo_runs(FULL) == trpo_runs(text)


@pytest.mark.parametrize(("before", "after"), [("authors", "text"), ("text", "authors")])
def test_a_folder_holds_the_studies_of_one_rule_set(tmp_path: Path, before: str, after: str) -> None:
    """Also in another stage than the one that is asked for."""
    one = long_runs(dataclasses.replace(QUICK, rules=before))[:1]
    sweep(one, tmp_path / "runs" / "long", workers=1, progress_bar=False)
    words = ["paper", "--quick", "--rules", after, "--only", "scaling", "--out", str(tmp_path)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code != 0
    assert "name another folder" in done.stderr
    assert "'rules': 'text'" in done.stderr
    assert not (tmp_path / "runs" / "scaling").exists()


@pytest.mark.long
def test_the_report_says_that_it_is_by_the_text(tmp_path: Path) -> None:
    found = json.loads(spaql_paper(tmp_path, "--rules", "text", "--json"))
    assert found["rules"] == "text"
    report = (tmp_path / "report.md").read_text("utf-8")
    assert "`spaql paper --quick --rules text`" in report
    assert "follow the paper's text literally" in report
    table = (tmp_path / "tables" / "results.csv").read_text("utf-8").splitlines()
    assert table[0].startswith("rules,problem,algorithm")
    assert table[1].startswith("text,Pendulum,AQL")
    curves = json.loads((tmp_path / "data" / "07-curves-cartpole.json").read_text("utf-8"))
    assert curves["title"].endswith("(rules: text)")


@pytest.mark.slow
def test_every_stage_leaves_its_files(out: Path) -> None:
    assert len(list((out / "figures").glob("*.svg"))) == len(list((out / "data").glob("*.json"))) == 13
    assert {path.name for path in (out / "tables").iterdir()} == {
        f"{name}.{suffix}" for name in ("results", "claims") for suffix in ("md", "csv", "tex")
    }
    page = (out / "report.html").read_text()
    assert page.count("<svg") == 13
    assert "<img" not in page
    assert "http-equiv" not in page


@pytest.mark.long
def test_deleted_runs_are_restored_to_the_same_bytes(out: Path) -> None:
    before = contents(out / "data"), contents(out / "tables"), contents(out / "figures")
    digests = [RunStore(out / "runs" / name).digest() for name in ("scaling", "long")]
    chosen = random.Random(0)
    for name, count in (("scaling", 6), ("long", 4)):
        for run_id in chosen.sample(RunStore(out / "runs" / name).finished(), count):
            shutil.rmtree(out / "runs" / name / run_id)
    spaql_paper(out)
    assert [RunStore(out / "runs" / name).digest() for name in ("scaling", "long")] == digests
    assert (contents(out / "data"), contents(out / "tables"), contents(out / "figures")) == before


@pytest.mark.slow
def test_one_figure_can_be_drawn_alone(out: Path) -> None:
    printed = spaql_paper(out, "--only", "06-scaling-cartpole").split()
    assert [Path(name).name for name in printed] == [
        f"06-scaling-cartpole.{suffix}" for suffix in ("json", "svg", "pdf", "png")
    ]


def test_tables_in_three_forms() -> None:
    cells = [{"problem": "Pendulum", "fresh": "-1.0 ± 2.0"}, {"problem": "CartPole", "fresh": "95 %"}]
    assert markdown(cells).splitlines()[2] == "| Pendulum | -1.0 ± 2.0 |"
    assert comma_separated(cells).splitlines() == ["problem,fresh", "Pendulum,-1.0 ± 2.0", "CartPole,95 %"]
    assert r"Pendulum & -1.0 $\pm$ 2.0 \\" in latex(cells)
    assert r"95 \%" in latex(cells)
