"""The commands of the docs name benchmarks, parts and options that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
TEXTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *BENCHMARKS.glob("*.py")]
COMMAND = re.compile(r"benchmarks/(\w+)\.py((?: +[^\s`#]+)*)")


def commands() -> dict[str, set[str]]:
    """Return the words of all commands, by script."""
    found: dict[str, set[str]] = {}
    for path in TEXTS:
        for script, words in COMMAND.findall(path.read_text(encoding="utf-8")):
            found.setdefault(script, set()).update(re.findall(r"--[a-z-]+|^ [a-z]+\b", words))
    return found


@pytest.mark.parametrize("script", sorted(commands()))
def test_a_command_of_the_docs_can_be_run(script: str) -> None:
    own = (BENCHMARKS / f"{script}.py").read_text(encoding="utf-8")
    shared = (BENCHMARKS / "studies.py").read_text(encoding="utf-8") if "seeds=" in own else ""
    for word in commands()[script]:
        if word.startswith("--"):
            assert f'"{word}"' in own + shared, f"{script}.py has no option {word}"
        elif "add_subparsers" in own or "@click.group" in own:
            assert f"def {word.strip()}(" in own, f"{script}.py has no part{word}"
