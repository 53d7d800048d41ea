"""What is fuzzed: the readers of files, and the command line, under the eyes of an audit hook."""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner
from fuzz_certificates import forge, grow_certificates, use_certificate
from mutants import mutant_of, mutate_text

import spaql
from spaql import archive
from spaql.agents.problem_file import problem_to
from spaql.cli import main as command_line
from spaql.cli.results import summarise
from spaql.experiments import RunStore, read_study, results
from spaql.plants import PlantModel, simulator, text
from spaql.plants.plant_file import plant_to

FORBIDDEN = (
    "exec", "compile", "import", "ctypes.", "subprocess.", "os.system", "os.exec", "os.fork",
    "os.spawn", "os.posix_spawn", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink",
    "os.truncate", "os.chmod", "os.chown", "shutil.", "socket.", "pickle.", "marshal.", "code.",
    "open for writing",
)  # fmt: skip


class Watch:
    """An audit hook that counts what a reader of data has no business with."""

    def __init__(self) -> None:
        self.on = False
        self.allowed: tuple[str, ...] = ()
        self.events: Counter[str] = Counter()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event.startswith(FORBIDDEN) and not event.startswith(self.allowed or "-"):
            self.events[f"{event}{arguments!r:.60}"] += 1
        elif (
            event == "open"
            and self.allowed != FORBIDDEN
            and isinstance(arguments[1], str)
            and set(arguments[1]) & set("wax+")
        ):
            self.events["open for writing"] += 1


WATCH = Watch()


def grow(folder: Path) -> list[bytes]:
    """Make a small model file of every kind."""
    files = []
    for make, env, budget, options in (
        (spaql.AQL, "pendulum5", {"iterations": 6}, {"horizon": 10, "rollouts": 2}),
        (spaql.SPAQL, "pendulum", {"iterations": 6}, {"rollouts": 2}),
        (spaql.SPAQL, "cartpole200", {"iterations": 6}, {"rollouts": 2}),
        (spaql.SPAQLTS, "cartpole200", {"iterations": 6}, {"rollouts": 2}),
        (spaql.PlanTree, "CartPole-v1", {"total_timesteps": 240}, {"effort": 0.01, "leaves": 4}),
        (spaql.PlanTree, "Pendulum-v1", {"total_timesteps": 240}, {"effort": 0.01, "leaves": 4}),
    ):
        agent = make(env, seed=1, **options).learn(**budget, progress_bar=False)
        agent.save(folder / "agent.spaql")
        files.append((folder / "agent.spaql").read_bytes())
        if isinstance(agent, spaql.SPAQL | spaql.SPAQLTS):
            spaql.Controller(spaql.rule_tree(agent), agent.problem).save(folder / "controller.spaql")
            files.append((folder / "controller.spaql").read_bytes())
        if isinstance(agent, spaql.PlanTree):
            agent.model.save(folder / "plant.spaql")
            files.append((folder / "plant.spaql").read_bytes())
    return files


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


def use_model(folder: Path, content: bytes) -> None:
    """Load a mutant as a user would, and use what was loaded."""
    path = folder / "mutant.spaql"
    path.write_bytes(content)
    WATCH.on = True
    if archive.load(path).data.get("kind") == "plant":
        use_plant(PlantModel.load(path))
        return
    model = spaql.load(path)
    if isinstance(model.policy, spaql.RuleTree):
        str(model.policy)
    batch = np.random.default_rng(0).normal(size=(3, *model.problem.states.space.shape))
    actions = model.policy.act(batch, np.zeros(3, np.int64), None)
    if isinstance(model, spaql.Agent) and not all(model.problem.actions.space.contains(a) for a in actions):
        raise AssertionError(f"{actions} are no actions of {model.problem.actions.space}")
    archive.dumps(*problem_to(model.problem))


def use_plant(model: PlantModel) -> None:
    """Predict with a learned plant, show it, play in it, and write it again."""
    told = model.predict(model.starts[:3], [model.action_space.sample() for _ in model.starts[:3]])
    if not np.all((told.ends >= 0) & (told.ends <= 1)):
        raise AssertionError(f"{told.ends} are no chances")
    world = simulator(model)
    world.reset(seed=0)
    world.step(model.action_space.sample())
    text(model)
    archive.dumps(*plant_to(model))


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
    """Give some models, and the words of some commands."""
    return [
        *grow(folder)[-4:],
        b"train cartpole200 --algo spaql --iterations 1 --rollouts 1 --seed 0 --scaling 2 --quiet --out",
        b"results nowhere --json --digest",
        b"show nowhere --step 0 --digits 3 --at 0,1,2,3",
        b"paper --quick --nothing",
    ]


def mutate_words(files: list[bytes], rng: random.Random) -> tuple[bytes, bool]:
    models = [content for content in files if content.startswith(b"spaql")]
    if rng.random() < 0.5:
        return mutant_of(models, rng)[0], True
    return mutate_text(files[len(models) :], rng)


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
    "certificate": Target(
        grow_certificates, forge, use_certificate, (spaql.ArchiveError,), allowed=FORBIDDEN, seconds=20.0
    ),
    "cli": Target(grow_words, mutate_words, use_command, (), allowed=FORBIDDEN),
}
