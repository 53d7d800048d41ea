"""Feed mutated files to every reader, and see that nothing but a typed error comes of it.

    python benchmarks/fuzz.py --mutants 1000000          # model files
    python benchmarks/fuzz.py --target study --mutants 100000

A mutant of a model file has bits flipped, parts cut, doubled, swapped with another file's, or numbers,
types and shapes replaced in its JSON. Three of four get a new, correct hash, so that the readers behind the
hash are tried as well. A mutant with the old hash must be refused. One with a new hash may be a model: then
it must act, within its action space, and be saved again. An audit hook ends the program if a mutant runs
code, starts a process, opens a connection or writes a file; a timer counts what takes too long.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.testing import CliRunner
from mutants import mutant_of, mutate_text

import spaql
from spaql import archive
from spaql.cli import main as command_line
from spaql.cli.results import summarise
from spaql.experiments import RunStore, read_study, results
from spaql.training import read
from spaql.training.problem_file import problem_to

HANGS_AFTER = 2.0
GROWTH_MB = 30
"""By which no mutant may let the process grow."""
MEASURED_EVERY = 100
"""Memory is measured for one mutant of so many: it slows Python down."""
FORBIDDEN = (
    "exec", "compile", "import", "ctypes.", "subprocess.", "os.system", "os.exec", "os.fork",
    "os.spawn", "os.posix_spawn", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink",
    "os.truncate", "os.chmod", "os.chown", "shutil.", "socket.", "pickle.", "marshal.", "code.",
    "open for writing",
)  # fmt: skip


class Watch:
    """An audit hook that counts what a reader of data has no business with."""

    def __init__(self, allowed: tuple[str, ...]) -> None:
        self.on = False
        self._allowed = allowed
        self.events: Counter[str] = Counter()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event.startswith(FORBIDDEN) and not event.startswith(self._allowed or "-"):
            self.events[f"{event}{arguments!r:.60}"] += 1
        elif (
            event == "open"
            and self._allowed != FORBIDDEN
            and isinstance(arguments[1], str)
            and set(arguments[1]) & set("wax+")
        ):
            self.events["open for writing"] += 1


def grow(folder: Path) -> list[bytes]:
    """Make a small model file of every kind."""
    files = []
    for make, env, options in (
        (spaql.AQL, "pendulum5", {"horizon": 10}),
        (spaql.SPAQL, "pendulum", {}),
        (spaql.SPAQL, "cartpole200", {}),
        (spaql.SPAQLTS, "cartpole200", {}),
    ):
        agent = make(env, seed=1, rollouts=2, **options).learn(6, progress_bar=False)
        agent.save(folder / "agent.spaql")
        files.append((folder / "agent.spaql").read_bytes())
        if not isinstance(agent, spaql.AQL):
            spaql.Controller(spaql.rule_tree(agent), agent.problem).save(folder / "controller.spaql")
            files.append((folder / "controller.spaql").read_bytes())
    return files


@dataclass(frozen=True)
class Target:
    """What is fuzzed: its sound files, how one is changed, and what is done with it."""

    seeds: Callable[[Path], list[bytes]]
    mutate: Callable[[list[bytes], random.Random], tuple[bytes, bool]]
    """Gives a mutant, and whether it may be taken for sound."""
    attempt: Callable[[Path, bytes], None]
    refusals: tuple[type[Exception], ...]
    constant: int = 100_000_000
    """Bytes that a mutant may take beside twice its size."""
    allowed: tuple[str, ...] = ()
    """Events of the audit hook that are its business."""


def use_model(folder: Path, content: bytes) -> None:
    """Load a mutant as a user would, and use what was loaded."""
    path = folder / "mutant.spaql"
    path.write_bytes(content)
    WATCH.on = True
    model = read(path)
    batch = np.random.default_rng(0).normal(size=(3, *model.problem.states.space.shape))
    actions = model.policy.act(batch, np.zeros(3, np.int64), None)
    if isinstance(model, spaql.Agent) and not all(model.problem.actions.space.contains(a) for a in actions):
        raise AssertionError(f"{actions} are no actions of {model.problem.actions.space}")
    archive.dumps(*problem_to(model.problem))


STUDY = b"""
problems = ["cartpole200", "pendulum"]
algorithms = ["spaql", "spaql-ts"]
seeds = 3
root_seed = 1
iterations = 2
fresh_episodes = 2
rollouts = 2
horizon = 5
[grid]
scaling = [0.4, 20]
temperature_min = [0.01]
[[runs]]
problem = "pendulum5"
algorithm = "aql"
seeds = [0, 5]
levels = 3
"""


def use_study(folder: Path, content: bytes) -> None:
    (folder / "study.toml").write_bytes(content)
    WATCH.on = True
    runs = read_study(folder / "study.toml")
    assert len({run.id for run in runs}) == len(set(runs))


def grow_store(folder: Path) -> list[bytes]:
    """Make a store of two runs, and give what a reader reads of it."""
    spaql.sweep(
        spaql.grid(["cartpole200"], ["spaql"], seeds=2, iterations=1, fresh_episodes=2, scaling=[1]),
        folder / "store",
        workers=1,
        progress_bar=False,
    )
    lease = folder / "store/.work/runs/cartpole200/spaql/scaling=1/seed=7/lease.0"
    lease.parent.mkdir(parents=True)
    lease.write_text(json.dumps({"machine": "m", "pid": 1, "started": "5"}))
    return [
        (folder / "store/cartpole200/spaql/scaling=1/seed=1/result.json").read_bytes(),
        lease.read_bytes(),
    ]


def use_store(folder: Path, content: bytes) -> None:
    store = folder / "store"
    run = store / "cartpole200/spaql/scaling=1"
    (run / "seed=1/result.json").write_bytes(content)
    (store / ".work/runs/cartpole200/spaql/scaling=1/seed=7/lease.0").write_bytes(content)
    WATCH.on = True
    found = RunStore(store)
    found.running()
    found.digest()
    table = results(store)
    assert all(len(table[name]) == table.runs for name in table)
    summarise(table)


def grow_words(folder: Path) -> list[bytes]:
    """Give a model, and the words of some commands."""
    return [
        *grow(folder)[-2:],
        b"train cartpole200 --algo spaql --iterations 1 --rollouts 1 --seed 0 --scaling 2 --quiet --out",
        b"results nowhere --json --digest",
        b"show nowhere --step 0 --digits 3 --at 0,1,2,3",
        b"paper --quick --nothing",
    ]


def mutate_words(files: list[bytes], rng: random.Random) -> tuple[bytes, bool]:
    if rng.random() < 0.5:
        return mutant_of(files[:2], rng)[0], True
    return mutate_text(files[2:], rng)


def use_command(folder: Path, content: bytes) -> None:
    """Give a mutant to the command line: as a model, as a study, or as its words."""
    (folder / "mutant").write_bytes(content)
    path = str(folder / "mutant")
    commands = [["evaluate", path, "--episodes", "1"], ["show", path, "--json"], ["sweep", path]]
    if not content.startswith(b"spaql"):
        words = content.decode(errors="replace").replace("\0", "").split()
        commands = [[word[:200] for word in words if word not in ("paper", "sweep")]]
    WATCH.on = True
    for words in commands:
        given = [str(folder / "out")] if words[-1:] == ["--out"] else []
        done = CliRunner().invoke(command_line, [*words, *given])
        shutil.rmtree(folder / "out", ignore_errors=True)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception


TARGETS = {
    "model": Target(grow, mutant_of, use_model, (spaql.ArchiveError,), constant=1_000_000),
    "study": Target(lambda _: [STUDY], mutate_text, use_study, (spaql.SpaqlError,)),
    "store": Target(
        grow_store, mutate_text, use_store, (spaql.SettingError,), allowed=("socket.gethostname",)
    ),
    "cli": Target(grow_words, mutate_words, use_command, (), allowed=FORBIDDEN),
}
WATCH: Watch


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
    """Bytes by which the memory of a load exceeds twice its file, at most, over those that were measured."""
    measured: int = 0
    largest_growth_mb: int = 0
    """By which the resident memory of the process has grown at one mutant, at most, over all of them."""
    seconds: float = 0.0
    processor_seconds: float = 0.0

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
    limit: float = HANGS_AFTER,
) -> str:
    """Try a mutant; gives what is wrong, if anything."""
    began = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        target.attempt(folder, content)
        report.loaded += 1
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
        signal.setitimer(signal.ITIMER_REAL, 0)
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
    global WATCH
    WATCH = Watch(TARGETS[target].allowed)
    signal.signal(signal.SIGALRM, hang)
    warnings.simplefilter("ignore")
    report = fuzz(target, mutants, seed, keep)
    click.echo(json.dumps({**asdict(report), "resident_mb": resident_mb()}, indent=2))
    if not report.sound():
        raise SystemExit("A mutant did what it must not.")


if __name__ == "__main__":
    main()
