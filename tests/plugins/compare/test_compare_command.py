"""`spaql study compare`: goes on where it was stopped, and draws what is there without torch."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spaql.cli import main
from spaql.figures import draw, read
from spaql.plugins.compare.study import ALGORITHMS, FULL, PROBLEMS
from spaql.plugins.sweeps.store import RunStore

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

pytestmark = pytest.mark.slow  # all share a study or a training

WITHOUT_TORCH = """
import sys
for name in ("torch", "stable_baselines3", "sb3_contrib"):
    sys.modules[name] = None
from spaql.cli import main
main(sys.argv[1:])
"""


def spaql_compare(out: Path, *options: str) -> Result:
    words = ["study", "compare", "--quick", "--quiet", "--workers", "1", "--out", str(out), *options]
    return CliRunner().invoke(main, words)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    done = spaql_compare(folder, "--only", "spaql", "--only", "classical", "--only", "CartPole-v1")
    assert done.exit_code == 0, done.output
    return folder


def test_a_deleted_run_is_done_again_and_all_figures_are_as_before(out: Path) -> None:
    def content() -> dict[str, bytes]:
        folders = (out / "data", out / "figures")
        return {path.name: path.read_bytes() for folder in folders for path in folder.iterdir()}

    store = RunStore(out / "runs")
    before = content()
    digest = store.digest()
    shutil.rmtree(out / "runs" / "CartPole-v1" / "spaql" / "total_interactions=20000" / "seed=6001")
    done = spaql_compare(out, "--only", "spaql", "--only", "CartPole-v1")
    assert done.exit_code == 0, done.output
    assert store.digest() == digest
    assert content() == before


def test_the_report_says_what_is_there_and_what_is_not(out: Path) -> None:
    words = ["study", "compare", "--only", "report", "--json", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *words], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"pairs": 0}
    text = (out / "report.md").read_text()
    assert "Seeds finished: SPAQL 2, Textbook 2. Not yet run: PlanTree, SPAQL-TS, SAC" in text
    assert "| Textbook | 0 | 2 | 500.0 ± 0.0 |" in text
    assert "rl-zoo3 2.9.2" in text
    page = (out / "report.html").read_text()
    assert page.count("<svg") == 1
    assert "<img" not in page
    assert {path.suffix for path in (out / "tables").iterdir()} == {".md", ".csv", ".tex"}


def test_a_figure_is_drawn_from_its_record_alone(out: Path) -> None:
    record = read(out / "data" / "CartPole-v1.json")
    (panel,) = record.panels
    learned, textbook = panel.lines
    assert (textbook.algorithm, textbook.end, textbook.fresh_mean) == ("classical", 0.0, 500.0)
    assert (learned.algorithm, learned.seeds) == ("spaql", 2)
    assert list(learned.interactions) == sorted(learned.interactions)
    (ax,) = draw(record).axes
    shown = {text.get_text() for text in ax.texts}
    assert any(text.startswith("Textbook  500") for text in shown)
    assert any(text.startswith("SPAQL  ") for text in shown)


def test_an_empty_folder_and_an_unknown_name_are_explained(tmp_path: Path) -> None:
    empty = spaql_compare(tmp_path, "--only", "report")
    assert empty.exit_code == 1
    assert "No run is finished" in empty.output
    unknown = spaql_compare(tmp_path, "--only", "sacc")
    assert unknown.exit_code == 1
    assert "no sacc: its algorithms are plantree" in unknown.output


def test_the_help_names_all_that_can_be_chosen() -> None:
    text = " ".join(CliRunner().invoke(main, ["study", "compare", "--help"]).output.split()).replace(
        "- ", "-"
    )
    assert f"Algorithms: {', '.join(ALGORITHMS)}." in text
    assert f"Problems: {', '.join(PROBLEMS)}." in text
    assert f"[default: {', '.join(map(str, FULL.plantree))}]" in text
    assert f"[default: {FULL.seeds}, and {FULL.network_seeds} for networks]" in text
