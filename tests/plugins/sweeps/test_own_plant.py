"""A plant in a module of its own, given as `module:id`: compiled in whichever process it is trained."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spaql.plugins.sweeps.store import RunStore

TANK = """
import spaql
TANK = spaql.Dynamics(
    id="Tank-v0",
    start=lambda rng: (rng.uniform(0.0, 1.0),),
    step=lambda state, action: ((min(state[0] * 0.9 + 0.1 * action, 1.0),), -abs(state[0] - 0.5), False),
    observations={"level [m]": (0.0, 1.0)},
    actions=("off", "on"),
    horizon=20,
    reference=(0.5,),
)
"""
RUN = """
from spaql import Run, SPAQLTS
from spaql.plugins.sweeps.store import RunStore
from spaql.plugins.sweeps.execute import execute
run = Run(
    problem="tank:Tank-v0", algorithm="spaql-ts", iterations=4, settings={"rollouts": 2}, fresh_episodes=2
)
"""
HALF = """
agent = SPAQLTS(run.problem, seed=run.agent_seed, **run.settings)
assert agent.problem.dynamics is not None
assert agent.problem.states.names == ("level [m]",)
assert agent.problem.reference == (0.5,)
checkpoint = RunStore("again").checkpoint(run)
checkpoint.parent.mkdir(parents=True)
agent.learn(iterations=2, progress_bar=False).save(checkpoint)
"""
REST = 'execute(run, root="again", checkpoint_every=100)'
WHOLE = 'execute(run, root="whole", checkpoint_every=100)'


def fresh_python(folder: Path, code: str) -> None:
    """Uncompiled: what is asked here is which path was taken, not how fast it is."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_a_run_goes_on_compiled_in_a_process_that_never_saw_the_plant(tmp_path: Path) -> None:
    (tmp_path / "tank.py").write_text(TANK)
    for rest in (HALF, REST, WHOLE):
        fresh_python(tmp_path, RUN + rest)
    assert RunStore(tmp_path / "again").digest() == RunStore(tmp_path / "whole").digest()
