"""Fuzz the model file's readers with atheris, which prefers mutants that reach new code.

    pip install atheris
    python benchmarks/fuzz_guided.py --seconds 600

What atheris makes up is what follows the hash, which is then put right: all readers behind it are reached.
Anything but a model that acts, or `spaql.ArchiveError`, ends the program with the input that did it.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

import atheris
import click
import fuzz_targets as fuzz
from mutants import HEAD

import spaql
from spaql import archive
from spaql.agents import agent, controller, history, problem_file
from spaql.algorithms import PlanTreeLearner
from spaql.algorithms.plantree.replay_memory import Memory
from spaql.partition import Partition
from spaql.plants import PlantModel, plant_file
from spaql.policy import tree_file
from spaql.spaces import describe

READERS = (
    (archive, ("loads", "_views", "number")),
    (agent, ("load",)),
    (problem_file, ("problem_from",)),
    (tree_file, ("tree_from",)),
    (describe, ("space_from",)),
    (history.History, ("from_arrays",)),
    (Partition, ("from_arrays", "_check_sound")),
    (PlanTreeLearner, ("restore", "_candidate_from")),
    (Memory, ("from_arrays",)),
    (controller.Controller, ("load",)),
    (plant_file, ("plant_from", "spaces_of")),
    (PlantModel, ("_check",)),
)


@click.command()
@click.option("--seconds", default=600, show_default=True)
def main(seconds: int) -> None:
    """Fuzz the model file's readers, guided by coverage."""
    folder = Path(tempfile.mkdtemp())
    corpus = folder / "corpus"
    corpus.mkdir()
    heads = []
    for index, content in enumerate(fuzz.grow(folder)):
        fuzz.use_model(folder, content)
        fuzz.WATCH.on = False
        (corpus / str(index)).write_bytes(content[HEAD:])
        heads.append(content[:8])
    fuzz.WATCH.events.clear()
    for place, names in READERS:
        for name in names:
            function = vars(place)[name]
            plain = function.__func__ if isinstance(function, classmethod) else function
            if not hasattr(plain, "__wrapped__"):
                atheris.instrument_func(plain)

    def try_body(body: bytes) -> None:
        try:
            fuzz.use_model(folder, heads[0] + hashlib.sha256(body).digest() + body)
        except spaql.ArchiveError:
            pass
        finally:
            fuzz.WATCH.on = False
        if fuzz.WATCH.events:
            raise RuntimeError(f"forbidden: {fuzz.WATCH.events}")

    limits = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-max_len=65536"]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={folder}/", str(corpus)], try_body)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
