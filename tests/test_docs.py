"""What the README and the docs show is run as it is written."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run_in_order(page: Path, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks(page, "python")))
    result = subprocess.run([sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_the_first_minute(tmp_path: Path) -> None:
    """The commands of the README's first block, and the report that it prints."""
    commands = [
        line[2:] for line in blocks(PAGES[0], "console")[0].splitlines() if line.startswith("$ spaql")
    ]
    assert len(commands) == 2
    env = dict(os.environ, PATH=f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}")
    outputs = []
    for command in commands:
        run = subprocess.run(
            command.split(" #")[0],
            shell=True,
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(run.stdout)
    printed = blocks(PAGES[0], "text")[0].splitlines()
    for shown, real in zip(printed, outputs[0].splitlines(), strict=False):
        assert re.sub(r"[\d.,±]+", "#", shown) == re.sub(r"[\d.,±]+", "#", real)
    assert "random policy" in outputs[1]
