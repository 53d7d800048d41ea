"""Feed mutated files to every reader, and see that nothing but a typed error comes of it.

    python benchmarks/fuzz.py --mutants 1000000          # model files
    python benchmarks/fuzz.py --target study --mutants 100000
    python benchmarks/fuzz.py --target certificate --mutants 100000

A mutant of a model file has bits flipped, parts cut, doubled, swapped with another file's, numbers, types
and shapes replaced in its JSON, or an array of another size and type. Four of five get a new, correct hash,
so that the readers behind the hash are tried as well. A mutant with the old hash must be refused. One with a
new hash may be a model: then it must act, within its action space, or predict, and be saved again. An
audit hook counts whatever runs code, starts a process, opens a connection or writes a file; a timer, what
takes too long.

A forged certificate has other claims, equations, controllers, cells or ranges, and a right hash. Whatever the
checker confirms of it is played from confirmed states, by a slow interpreter of the file's own equations: an
episode that contradicts the printed sentence is a fault ("wrongly confirmed").
"""

from __future__ import annotations

import json
import random
import resource
import signal
import tempfile
import time
import tracemalloc
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from fuzz_targets import TARGETS, WATCH, Target

GROWTH_MB = 30
"""By which no mutant may let the process grow."""
MEASURED_EVERY = 100
"""Memory is measured for one mutant of so many: it slows Python down."""
TOLD_EVERY = 50_000
"""Mutants after which a long run says where it is."""


@dataclass
class Report:
    """What became of the mutants."""

    target: str
    mutants: int = 0
    refused: int = 0
    loaded: int = 0
    silently_loaded: int = 0
    other_errors: int = 0
    hangs: int = 0
    events: int = 0
    slowest_ms: float = 0.0
    peak_beyond_twice: int = -(2**60)
    """Bytes by which the memory of a load exceeds twice its file, at most, over those measured."""
    measured: int = 0
    largest_growth_mb: int = 0
    """By which the resident memory of the process has grown at one mutant, at most, over all of them."""
    seconds: float = 0.0
    processor_seconds: float = 0.0
    answers: dict[str, int] = field(default_factory=dict)
    """How often those that were loaded had which answer."""

    def sound(self) -> bool:
        faults = self.silently_loaded + self.other_errors + self.hangs + self.events
        faults += self.largest_growth_mb > GROWTH_MB
        return not faults and self.peak_beyond_twice <= TARGETS[self.target].constant


class Hang(BaseException):
    """Raised by the timer."""


def hang(number: int, frame: Any) -> None:
    raise Hang


def attempt(
    target: Target,
    folder: Path,
    content: bytes,
    may_be_sound: bool,
    report: Report,
    limit: float | None = None,
) -> str:
    """Try a mutant; gives what is wrong, if anything."""
    began, limit = time.perf_counter(), limit or target.seconds
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        answer = target.attempt(folder, content)
        report.loaded += 1
        if isinstance(answer, str):
            report.answers[answer] = report.answers.get(answer, 0) + 1
        if not may_be_sound:
            report.silently_loaded += 1
            return "loaded, though its content was changed"
    except target.refusals:
        report.refused += 1
    except Hang:
        report.hangs += 1
        return f"takes longer than {limit} s"
    except BaseException as error:
        report.other_errors += 1
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        WATCH.on = False
        report.slowest_ms = max(report.slowest_ms, 1000 * (time.perf_counter() - began))
    return ""


def resident_mb() -> int:
    """Give the most memory that the process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def fuzz(name: str, mutants: int, seed: int, keep: Path | None) -> Report:
    """Try so many mutants; those that show a fault are kept."""
    target, rng, report = TARGETS[name], random.Random(seed), Report(name)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as where:
        folder = Path(where)
        files = target.seeds(folder)
        for content in files:
            attempt(target, folder, content, True, Report(name), limit=300.0)  # compiles, and imports
        WATCH.events.clear()
        began, processor = time.perf_counter(), time.process_time()
        for index in range(mutants):
            content, may_be_sound = target.mutate(files, rng)
            if measured := index % MEASURED_EVERY == 0:
                tracemalloc.start()
            before = resident_mb()
            wrong = attempt(target, folder, content, may_be_sound or content in files, report)
            report.largest_growth_mb = max(report.largest_growth_mb, resident_mb() - before)
            if resident_mb() - before > GROWTH_MB:
                wrong = f"takes {resident_mb() - before} MB"
            if measured:
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                report.peak_beyond_twice = max(report.peak_beyond_twice, peak - 2 * len(content))
                report.measured += 1
            if WATCH.events:
                wrong = f"events {dict(WATCH.events)}"
                report.events += sum(WATCH.events.values())
                WATCH.events.clear()
            if wrong:
                click.echo(f"mutant {index}: {wrong}", err=True)
                if keep is not None:
                    keep.mkdir(parents=True, exist_ok=True)
                    (keep / f"{name}-{seed}-{index}").write_bytes(content)
            report.mutants += 1
            if report.mutants % TOLD_EVERY == 0:
                click.echo(f"{report.mutants} mutants, {report.refused} refused", err=True)
        report.seconds = round(time.perf_counter() - began, 1)
        report.processor_seconds = round(time.process_time() - processor, 1)
    return report


@click.command()
@click.option("--target", type=click.Choice([*TARGETS]), default="model", show_default=True)
@click.option("--mutants", default=10_000, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), help="folder for mutants that show a fault")
def main(target: str, mutants: int, seed: int, keep: Path | None) -> None:
    """Feed mutated files to a reader, and see that nothing but a typed error comes of it."""
    WATCH.allowed = TARGETS[target].allowed
    signal.signal(signal.SIGPROF, hang)
    warnings.simplefilter("ignore")
    report = fuzz(target, mutants, seed, keep)
    click.echo(json.dumps({**asdict(report), "resident_mb": resident_mb()}, indent=2))
    if not report.sound():
        raise SystemExit("A mutant did what it must not.")


if __name__ == "__main__":
    main()
