"""Hashes at the head of exported code: of the program of the controller, and of the plant that it is for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from spaql.controllers import Controller
from spaql.controllers.resolve import PathLike
from spaql.errors import SettingError
from spaql.export.machine import machine_of
from spaql.problems import Problem
from spaql.problems.content import sha256
from spaql.program.controller import controller_program
from spaql.program.ir import digest

_LINE = re.compile(rb"\b(program|plant) sha256 ([0-9a-f]{64})\b")


def hashes_of(controller: Controller, problem: Problem | None) -> dict[str, str]:
    """Return the SHA-256 of a controller's program and, if it has one, that of its plant, by these names.

    The program is the one in double precision, without a safe action: a certificate has its hash as well.
    """
    hashes = {"program": program_digest(controller)}
    plant = {} if problem is None else problem.plant_now or problem.plant
    return hashes | ({"plant": sha256(sorted(plant.items()))} if plant else {})


def program_digest(controller: Controller) -> str:
    """Return the SHA-256 of the program of a controller."""
    return digest(*controller_program(machine_of(controller).specification()))


def hash_lines(controller: Controller, problem: Problem | None) -> list[str]:
    """Return lines for the head of exported code, with its hashes."""
    return [f"{name} sha256 {digest}" for name, digest in hashes_of(controller, problem).items()]


def difference(path: PathLike, hashes: Mapping[str, str]) -> str:
    """Return in what the hashes at the head of exported code differ from others; empty if they do not."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}.") from error
    kept = {name.decode(): digest.decode() for name, digest in reversed(_LINE.findall(content))}  # the first
    if not kept:
        return "it has no hashes"
    texts = (
        f"the hash of its {name} is {kept[name][:16]}" if name in kept else f"it has no hash of a {name}"
        for name in {**kept, **hashes}
        if kept.get(name) != hashes.get(name)
    )
    return ", and ".join(texts)
