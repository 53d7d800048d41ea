"""A bill of materials of an exported controller (CycloneDX 1.5): what it is, and what made it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

from spaql.export.compilers import compiler_version


def bill_of_materials(
    name: str, files: Mapping[str, bytes], provenance: Sequence[str], tools: Sequence[str]
) -> bytes:
    """Return the bill of materials of the files of a controller as JSON.

    It has the SHA-256 of each file, the lines about its origin, among them the SHA-256 of the model file, and
    the packages and programs that made it, with their versions. It has no date and no serial number: the same
    controller, made by the same programs, has the same bytes.
    """
    packages = _packages("spaql")
    programs = [{"type": "application", "bom-ref": one, "name": one} for one in (compiler_version(), *tools)]
    made = {
        "type": "firmware",
        "bom-ref": name,
        "name": name,
        "components": [_file(file, content) for file, content in files.items()],
        "properties": [{"name": "spaql:provenance", "value": line} for line in provenance],
    }
    data = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": made, "tools": {"components": [*packages.values(), *programs]}},
    }
    return (json.dumps(data, indent=2) + "\n").encode()


def _file(name: str, content: bytes) -> dict[str, Any]:
    digest = {"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}
    return {"type": "file", "bom-ref": name, "name": name, "hashes": [digest]}


def _packages(first: str) -> dict[str, dict[str, Any]]:
    """Return the installed packages that one depends on without extras, and itself, by name."""
    waiting, found = [first], dict[str, dict[str, Any]]()
    while waiting:
        name = waiting.pop(0).lower().replace("_", "-")
        if name in found:
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # for another platform
        purl = f"pkg:pypi/{name}@{package.version}"
        found[name] = {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": package.version,
            "purl": purl,
        }
        plain = (one for one in package.requires or [] if "extra ==" not in one)
        waiting += [re.split(r"[^A-Za-z0-9_.-]", one, maxsplit=1)[0] for one in plain]
    return found
