"""What a release needs: metadata, one version, one address, pinned actions, and files that sites read."""

import ast
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import spaql
from spaql.errors import deprecated

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ADDRESS = PROJECT["urls"]["Source"].removeprefix("https://github.com/")
CONTACT = PROJECT["authors"][0]["email"]
WITH_ADDRESS = ("pyproject.toml", "CITATION.cff", "CODE_OF_CONDUCT.md", "SECURITY.md", "conda/recipe.yaml")


def test_links_of_the_readme_lead_to_the_files_of_the_version() -> None:
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]
    text = (ROOT / "README.md").read_text()
    for change in hook["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(targets) > 20
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    raw = [target for target in targets if target.startswith("https://raw.")]
    assert raw
    assert all(target.endswith((".gif", ".svg", ".png")) for target in raw)


@pytest.mark.parametrize("name", WITH_ADDRESS)
def test_files_agree_on_address_and_contact(name: str) -> None:
    text = (ROOT / name).read_text()
    assert set(re.findall(r"github\.com/([\w.-]+/spaql)\b", text)) <= {ADDRESS}
    assert set(re.findall(r"[\w.+-]+@[\w-]+\.[\w.]*\w", text)) <= {CONTACT}
    assert ADDRESS in text or CONTACT in text


def test_the_version_stands_in_one_place_and_the_recipe_has_it() -> None:
    assert spaql.__version__ == PROJECT["version"]
    assert f'version: "{PROJECT["version"]}"' in (ROOT / "conda/recipe.yaml").read_text()
    assert not re.search(r"^version:", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert f"## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_recipe_runs_with_the_dependencies_of_the_project() -> None:
    text = (ROOT / "conda/recipe.yaml").read_text()
    run = text.split("  run:\n")[1].split("\n\n")[0]
    listed = {line.strip("- ").replace(" ", "") for line in run.splitlines()}
    assert listed == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}


def test_the_citation_names_the_paper() -> None:
    """That it is valid, `.ci/release` asks cffconvert, which needs an old jsonschema."""
    text = (ROOT / "CITATION.cff").read_text()
    related = json.loads((ROOT / ".zenodo.json").read_text())["related_identifiers"][0]
    assert f'doi: "{related["identifier"]}"' in text


@pytest.mark.skipif(not (ROOT / ".github").exists(), reason="a source distribution has no workflows")
def test_actions_are_pinned_by_hash() -> None:
    for workflow in (ROOT / ".github/workflows").glob("*.yml"):
        for used in re.findall(r"uses: *(.*)", workflow.read_text()):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", used), (workflow.name, used)


def test_what_is_deprecated_is_removed_in_time() -> None:
    now = tuple(map(int, PROJECT["version"].split(".")))
    for path in Path(spaql.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", None) == "deprecated":
                arguments = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
                due = tuple(map(int, arguments["removed_in"].split(".")))
                assert now < due, f"{path}: remove {arguments['name']} now."


def test_a_deprecated_name_says_what_to_use() -> None:
    with pytest.warns(FutureWarning, match=r"^old is deprecated since spaql 0\.2, and spaql 0\.4 removes it"):
        deprecated(name="old", since="0.2", removed_in="0.4", instead="new")


def test_the_address_is_written_into_every_file(tmp_path: Path) -> None:
    for name in (*WITH_ADDRESS, "README.md", ".ci/address"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for command in (["git", "init", "-q"], ["git", "add", "-A"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    new = ["https://github.com/control/spaql", "people@control.example"]
    subprocess.run(["python", tmp_path / ".ci/address", *new], check=True, cwd=tmp_path)
    for name in WITH_ADDRESS:
        assert ADDRESS not in (tmp_path / name).read_text()
        assert CONTACT not in (tmp_path / name).read_text()
    shown = subprocess.run(["python", tmp_path / ".ci/address"], capture_output=True, text=True, cwd=tmp_path)
    assert shown.stdout.split() == new


def test_the_paper_lacks_only_what_its_authors_fill_in() -> None:
    text = (ROOT / "paper/paper.md").read_text()
    body = text.split("---\n", 2)[2]
    assert 750 <= len(body.split()) <= 1750
    assert re.findall(r"^# (.*)$", body, re.MULTILINE) == [
        "Summary",
        "Statement of need",
        "State of the field",
        "Software design",
        "Research impact statement",
        "AI usage disclosure",
        "Acknowledgements",
        "References",
    ]
    assert re.findall(r"TO FILL IN: ([\w ]+)", text) == [
        "names of the authors",
        "affiliations of the authors",
        "date of submission",
        "by the authors",
    ]
    sources = set(re.findall(r"^@\w+\{(\w+),$", (ROOT / "paper/paper.bib").read_text(), re.MULTILINE))
    assert set(re.findall(r"@(\w+)", body)) == sources
