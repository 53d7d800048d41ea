"""Feed mutated files to every reader, and see that nothing but a typed error comes of it.

    python benchmarks/fuzz.py --mutants 1000000          # model files
    python benchmarks/fuzz.py --target study --mutants 100000
    python benchmarks/fuzz.py --target certificate --mutants 100000
    python benchmarks/fuzz.py --guided 600               # seconds; needs pip install atheris

A mutant of a model file has bits flipped, parts cut, doubled, swapped with another file's, numbers, types
and shapes replaced in its JSON, or an array of another size and type. Four of five get a new, correct hash,
so that the readers behind the hash are tried as well. A mutant with the old hash must be refused. One with a
new hash may be a model: then it must act, within its action space, or predict, and be saved again. An
audit hook counts whatever runs code, starts a process, opens a connection or writes a file; a timer, what
takes too long.

A forged certificate has other claims, equations, controllers, cells or ranges, and a right hash. Whatever the
checker confirms of it is played from confirmed states, by a slow interpreter of the file's own equations: an
episode that contradicts the printed sentence is a fault ("wrongly confirmed").

With --guided atheris makes up what follows the hash of a model file, and prefers what reaches new code.
Anything but a model that acts, or `spaql.ArchiveError`, ends the program with the input that did it.
"""

from __future__ import annotations

import inspect
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

import spaql
from fuzz_certificates import forge, grow_certificates, use_certificate
from mutants import HEAD, mutant_of, mutate_text, with_hash
from spaql import archive
from spaql.agents import agent, design, history, problem_file
from spaql.algorithms import replay
from spaql.cli import main as command_line
from spaql.controllers import file as controller_file
from spaql.plugins.sweeps.results_command import summarise
from spaql.plugins.sweeps.store import RunStore
from spaql.plugins.sweeps.study import read_study
from spaql.plugins.sweeps.table import results
from spaql.spaces import names as space_names
from studies import parser

FORBIDDEN = (
    *("exec", "compile", "import", "ctypes.", "subprocess.", "os.system", "os.exec", "os.fork", "os.spawn"),
    *("os.posix_spawn", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink"),
    *("os.truncate", "os.chmod", "os.chown", "shutil.", "socket.", "pickle.", "marshal.", "code."),
)
GROWTH_MB = 30
"""By which no mutant may let the process grow."""
MEASURED_EVERY = 100
"""ReplayMemory is measured for one mutant of so many: it slows Python down."""


class Watch:
    """An audit hook that counts what a reader of data has no business with."""

    def __init__(self) -> None:
        self.on = False
        self.allowed: tuple[str, ...] = ()
        self.events: Counter[str] = Counter()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on or self.allowed == FORBIDDEN:
            return
        writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
        if writes or (event.startswith(FORBIDDEN) and event not in self.allowed):
            self.events[f"{event}{arguments!r:.60}"] += 1


WATCH = Watch()


def grow(folder: Path) -> list[bytes]:
    """Make a small model file of every kind."""
    files = []
    path = folder / "grown.spaql"

    def save(one: Any) -> None:
        one.save(path)
        files.append(path.read_bytes())

    for make, env, budget, options in (
        (spaql.AQL, "pendulum5", {"iterations": 6}, {"horizon": 10, "rollouts": 2}),
        (spaql.SPAQL, "pendulum", {"iterations": 6}, {"rollouts": 2}),
        (spaql.SPAQL, "cartpole200", {"iterations": 6}, {"rollouts": 2}),
        (spaql.SPAQLTS, "cartpole200", {"iterations": 6}, {"rollouts": 2}),
        (spaql.PlanTree, "CartPole-v1", {"total_timesteps": 240}, {"effort": 0.01, "leaves": 4}),
        (spaql.PlanTree, "Pendulum-v1", {"total_timesteps": 240}, {"effort": 0.01, "leaves": 4}),
    ):
        trained = make(env, seed=1, **options).learn(**budget, progress_bar=False)
        save(trained)
        if make not in (spaql.AQL, spaql.PlanTree):
            save(spaql.Design(spaql.controller_of(trained), trained.problem))
    return files


def use_model(folder: Path, content: bytes) -> None:
    """Load a mutant as a user would, and use what was loaded."""
    path = folder / "mutant.spaql"
    path.write_bytes(content)
    WATCH.on = True
    model = spaql.load(path)
    str(model.policy)
    batch = np.random.default_rng(0).normal(size=(3, *model.problem.states.space.shape))
    actions = model.policy.act(batch, np.zeros(3, np.int64), None)
    if isinstance(model, spaql.Agent) and not all(model.problem.actions.space.contains(a) for a in actions):
        raise AssertionError(f"{actions} are no actions of {model.problem.actions.space}")
    archive.dumps(*problem_file.problem_to(model.problem))


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
"""


def use_study(folder: Path, content: bytes) -> None:
    (folder / "study.toml").write_bytes(content)
    WATCH.on = True
    runs = read_study(folder / "study.toml")
    assert len({run.id for run in runs}) == len(set(runs))


RESULT = "cartpole200/spaql/scaling=1/seed=1/result.json"
LEASE = ".work/runs/cartpole200/spaql/scaling=1/seed=7/lease"


def grow_store(folder: Path) -> list[bytes]:
    """Make a store of two runs, and give what a reader reads of it."""
    runs = spaql.grid(["cartpole200"], ["spaql"], seeds=2, iterations=1, fresh_episodes=2, scaling=[1])
    spaql.sweep(runs, folder / "store", workers=1, progress_bar=False)
    (folder / "store" / LEASE).parent.mkdir(parents=True)
    return [(folder / "store" / RESULT).read_bytes(), b"process 1 on m"]


def use_store(folder: Path, content: bytes) -> None:
    store = folder / "store"
    for name in (RESULT, LEASE):
        (store / name).write_bytes(content)
    WATCH.on = True
    found = RunStore(store)
    found.running()
    found.digest()
    table = results(store)
    assert all(len(table[name]) == table.runs for name in table)
    summarise(table)


def grow_words(folder: Path) -> list[bytes]:
    """Give some models, and the words of some commands."""
    return [
        *grow(folder)[-4:],
        b"train cartpole200 --algo spaql --iterations 1 --rollouts 1 --seed 0 --scaling 2 --quiet --out",
        b"study results nowhere --json --digest",
        b"show nowhere --step 0 --digits 3 --at 0,1,2,3",
        b"paper --quick --nothing",
    ]


def mutate_words(files: list[bytes], rng: random.Random) -> tuple[bytes, bool]:
    return (mutant_of(files[:4], rng)[0], True) if rng.random() < 0.5 else mutate_text(files[4:], rng)


def use_command(folder: Path, content: bytes) -> None:
    """Give a mutant to the command line: as a model, as a study, or as its words."""
    (folder / "mutant").write_bytes(content)
    path = str(folder / "mutant")
    commands = [["evaluate", path, "--episodes", "1"], ["show", path, "--json"], ["study", "run", path]]
    if not content.startswith(b"spaql"):
        words = content.decode(errors="replace").replace("\0", "").split()
        commands = [[word[:200] for word in words if word not in ("paper", "study")]]
    WATCH.on = True
    for words in commands:
        given = [str(folder / "out")] if words[-1:] == ["--out"] else []
        done = CliRunner().invoke(command_line, [*words, *given])
        shutil.rmtree(folder / "out", ignore_errors=True)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception


@dataclass(frozen=True)
class Target:
    """What is fuzzed: its sound files, how one is changed, and what is done with it."""

    seeds: Callable[[Path], list[bytes]]
    mutate: Callable[[list[bytes], random.Random], tuple[bytes, bool]]
    """Gives a mutant, and whether it may be taken for sound."""
    attempt: Callable[[Path, bytes], object]
    """Uses a mutant; returns what became of it, if there is more than one answer."""
    refusals: tuple[type[Exception], ...]
    constant: int = 100_000_000
    """Bytes that a mutant may take beside twice its size."""
    allowed: tuple[str, ...] = ()
    """Events of the audit hook that are its business."""
    seconds: float = 2.0
    """On the processor, so that a busy machine makes no difference; what takes longer hangs."""


REFUSED = (spaql.ArchiveError,)
TARGETS = {
    "model": Target(grow, mutant_of, use_model, REFUSED, constant=1_000_000),
    "study": Target(lambda _: [STUDY], mutate_text, use_study, (spaql.SpaqlError,)),
    "store": Target(
        grow_store, mutate_text, use_store, (spaql.SettingError,), allowed=("socket.gethostname",)
    ),
    "certificate": Target(
        grow_certificates, forge, use_certificate, REFUSED, allowed=FORBIDDEN, seconds=20.0
    ),
    "cli": Target(grow_words, mutate_words, use_command, (), allowed=FORBIDDEN),
}


class Hang(BaseException):
    """Raised by the timer."""


def hang(number: int, frame: Any) -> None:
    raise Hang


def attempt(
    target: Target, folder: Path, content: bytes, may_be_sound: bool, seconds: float
) -> tuple[str, str]:
    """Try a mutant; returns what became of it, and what is wrong, if anything."""
    WATCH.events.clear()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        answer = target.attempt(folder, content) or "used"
        found = ("loaded", str(answer) if may_be_sound else "")
    except target.refusals:
        found = ("refused", "refused")
    except Hang:
        return "hangs", f"takes longer than {seconds} s"
    except BaseException as error:
        return "other errors", f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        WATCH.on = False
    if WATCH.events:
        return found[0], f"wrong: events {dict(WATCH.events)}"
    return found if found[1] else ("loaded", "wrong: loaded, though its content was changed")


def resident_mb() -> int:
    """Give the most memory that the process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def fuzz(name: str, mutants: int, seed: int, keep: Path | None) -> dict[str, Any]:
    """Try so many mutants; those that show a fault are kept."""
    target = TARGETS[name]
    rng = random.Random(seed)
    report: Counter[str] = Counter(refused=0, loaded=0, faults=0)
    slowest = 0.0
    growth = 0
    peak = -(2**60)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as where:
        folder = Path(where)
        files = target.seeds(folder)
        for content in files:
            attempt(target, folder, content, True, 300.0)  # compiles, and imports
        began = time.process_time()
        for index in range(mutants):
            content, may_be_sound = target.mutate(files, rng)
            if measured := index % MEASURED_EVERY == 0:
                tracemalloc.start()
            before = resident_mb()
            start = time.process_time()
            kind, said = attempt(target, folder, content, may_be_sound or content in files, target.seconds)
            slowest = max(slowest, time.process_time() - start)
            grown = resident_mb() - before
            growth = max(growth, grown)
            if measured:
                peak = max(peak, tracemalloc.get_traced_memory()[1] - 2 * len(content))
                tracemalloc.stop()
            report.update((kind, said) if kind == "loaded" and not said.startswith("wrong") else (kind,))
            if kind not in ("refused", "loaded") or said.startswith("wrong") or grown > GROWTH_MB:
                report["faults"] += 1
                print(f"mutant {index}: {kind}, {said}, {grown} MB", file=sys.stderr)
                if keep is not None:
                    keep.mkdir(parents=True, exist_ok=True)
                    (keep / f"{name}-{seed}-{index}").write_bytes(content)
    report["faults"] += peak > target.constant
    sizes = {"peak beyond twice": peak, "growth in MB": growth, "resident MB": resident_mb()}
    seconds = {"slowest": slowest, "processor seconds": time.process_time() - began}
    return {"target": name, "mutants": mutants, **report, **sizes, **seconds}


READERS = (
    archive,
    agent,
    problem_file,
    controller_file,
    space_names,
    history,
    replay,
    design,
)


def guided(seconds: int) -> None:
    """Fuzz the model file's readers, guided by coverage."""
    import atheris

    folder = Path(tempfile.mkdtemp())
    corpus = folder / "corpus"
    corpus.mkdir()
    files = grow(folder)
    for index, content in enumerate(files):
        use_model(folder, content)
        (corpus / str(index)).write_bytes(content[HEAD:])
    for module in READERS:
        for _, part in inspect.getmembers(module, lambda one: inspect.getmodule(one) is module):  # noqa: B023
            parts = [found for _, found in inspect.getmembers(part)] if inspect.isclass(part) else [part]
            for one in parts:
                plain = getattr(one, "__func__", one)
                if inspect.isfunction(plain) and not hasattr(plain, "__wrapped__"):
                    atheris.instrument_func(plain)

    def try_body(body: bytes) -> None:
        kind, said = attempt(TARGETS["model"], folder, with_hash(files[0][:HEAD] + body), True, 10.0)
        if kind not in ("refused", "loaded") or said.startswith("wrong"):
            raise RuntimeError(said)

    limits = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-max_len=65536"]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={folder}/", str(corpus)], try_body)
    atheris.Fuzz()


def main() -> None:
    """Fuzz, and print what became of the mutants."""
    options = parser(__doc__)
    options.add_argument("--target", choices=TARGETS, default="model")
    options.add_argument("--mutants", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--keep", type=Path, help="folder for mutants that show a fault")
    options.add_argument("--guided", type=int, metavar="SECONDS", help="by atheris, model files alone")
    given = options.parse_args()
    WATCH.allowed = TARGETS[given.target].allowed
    signal.signal(signal.SIGPROF, hang)
    warnings.simplefilter("ignore")
    if given.guided:
        guided(given.guided)
        return
    report = fuzz(given.target, given.mutants, given.seed, given.keep)
    print(json.dumps(report, indent=2))
    if report["faults"]:
        raise SystemExit("A mutant did what it must not.")


if __name__ == "__main__":
    main()
