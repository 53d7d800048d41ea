"""`spaql new`: create a project for the user's own plant, ready to run."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import click

from spaql.cli.command import command
from spaql.cli.report import PATH, Report
from spaql.errors import SettingError

_SUFFIX = ".template"
_HIDDEN = "dot-"
"""Prefix of a template for a file whose name starts with a dot."""


@command("the names of the files")
@click.argument("folder", metavar="NAME", type=PATH)
def new(folder: Path) -> Report:
    """Create a project for your own plant in the new folder NAME.

    The project works as it is: a plant of two tanks with a set-point, noise and a load, whose equations you
    replace by your own; tests that check the equations; a study; and a README with the commands to
    train, read, compare and export.

    \b
    Examples:
      spaql new two-tanks
      cd two-tanks && python -m pytest
      spaql train plant:TwoTanks-v0 --out runs/first
    """
    parts = re.findall(r"[A-Za-z0-9]+", folder.name)
    if not re.fullmatch(r"[A-Za-z][\w-]*", folder.name, re.ASCII):
        raise SettingError(
            f"{folder.name!r} is not a valid project name: use a letter, then letters, digits, - and _."
        )
    if folder.exists():
        raise SettingError(f"{folder} already exists: choose another name, or remove it.")
    plant = "".join(part[0].upper() + part[1:] for part in parts) + "-v0"
    written = write_project(folder, plant)
    lines = [f"wrote  {file}" for file in written]
    lines += ["", f"Next: cd {folder}; python -m pytest; spaql train plant:{plant}"]
    data = {"folder": str(folder), "env": f"plant:{plant}", "files": [str(file) for file in written]}
    return Report(data, "\n".join(lines))


def write_project(folder: Path, plant: str) -> list[Path]:
    """Write the files of a project whose plant has this id; return their paths."""
    from spaql.archive import write_together

    written = {}
    for template in sorted(files("spaql.cli").joinpath("templates").iterdir(), key=lambda file: file.name):
        name = template.name.removesuffix(_SUFFIX).replace(_HIDDEN, ".", 1)
        text = template.read_text(encoding="utf-8").replace("{{name}}", folder.name).replace("{{id}}", plant)
        written[folder / name] = text.encode()
    write_together(written)
    return list(written)
