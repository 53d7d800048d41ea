"""The stages of a design: the result of each is a file, and is computed again if its inputs have changed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from spaql.agents.agent_file import MODEL_FILE
from spaql.agents.run_folder import versions
from spaql.archive import file_sha256, write_atomically
from spaql.cli.report import say, without_infinities
from spaql.formatting import duration
from spaql.problems.content import sha256

RUN = "run"
"""The run folder, in the folder of a design."""
STAGES = "stages"
"""The folder of the results."""


@dataclass(frozen=True)
class Result:
    """The result of a stage."""

    line: str
    """For the terminal."""
    html: str
    """For the report."""
    conclusion: str = ""
    """For the head of the report."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Hashes."""
    files: tuple[str, ...] = ()
    """Paths of the files that it has written, in the folder of the design."""


class Stages:
    """The stages of a design in a folder, in the order in which they were run."""

    def __init__(self, folder: Path, *, quiet: bool) -> None:
        self.folder = folder
        self.quiet = quiet
        self.results: dict[str, Result] = {}

    def run(self, name: str, inputs: Mapping[str, Any], work: Callable[[], Result]) -> Result:
        """Return the result of a stage: that of its file if its inputs and its files are unchanged."""
        file = self.folder / STAGES / f"{name}.json"
        key = sha256(json.dumps([versions(), inputs], sort_keys=True, default=str))
        result = self._kept(file, key)
        spent = "done before"
        if result is None:
            began = time.perf_counter()
            result = work()
            spent = duration(round(time.perf_counter() - began, 1))
            content = asdict(result) | {"inputs": key, "hashes": self.hashes(result)}
            write_atomically(file, (json.dumps(without_infinities(content), indent=1) + "\n").encode())
            result = self._kept(file, key) or result
        if not self.quiet:
            say(f"{name:<10} {result.line}  ({spent})")
        self.results[name] = result
        return result

    def _kept(self, file: Path, key: str) -> Result | None:
        """Return the result in a file if it is still valid."""
        try:
            content = json.loads(file.read_bytes())
            same = content.pop("inputs") == key
            hashes = content.pop("hashes")
            result = Result(**content)
            return result if same and hashes == self.hashes(result) else None
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def hashes(self, result: Result) -> dict[str, str]:
        """Return the SHA-256 of the files that a stage has written, by their paths."""
        return {path: file_sha256(self.folder / path) for path in result.files}

    @property
    def conclusion(self) -> str:
        """The sentence with which the report begins."""
        return next(filter(None, (result.conclusion for result in self.results.values())))

    @property
    def controller(self) -> dict[str, str]:
        """The controller's file and its hash, as input of a stage."""
        return {f"{RUN}/{MODEL_FILE}": file_sha256(self.folder / RUN / MODEL_FILE)}
