"""Ten minutes of a pendulum under an exported controller, in C and in Python, compared step by step.

`python examples/closed_loop_c/closed_loop.py` builds a swing-up controller as rules, exports it as C with an
equivalence check, compiles it with a plant in C, and runs both closed loops from several starts. Any
controller over Pendulum's observations can be used instead, such as `spaql.controller_of(agent)`.
"""

import math
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from gymnasium.spaces import Box

import spaql.export
from spaql.controllers import Controller, Laws
from spaql.controllers.rules import Nodes
from spaql.problems.classic import observe_pendulum, step_pendulum

HERE = Path(__file__).parent
STEPS = 12_000
"""Ten minutes of 0.05 s."""
FLAGS = ("-std=c99", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror", "-ffp-contract=off")


def swing_up() -> Controller:
    """Return a tree that pumps energy until it is sufficient, and holds upright by an affine law."""
    hold = 0
    left = 1
    right = 2
    laws = Laws(
        gain=[[[0.0, -12.0, -3.0]], [[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]]],
        offset=[[0.0], [-2.0], [2.0]],
    )
    nodes = Nodes()

    def pump(enough: float) -> int:
        """Push in the direction of motion until the speed is sufficient, then against it."""
        slow = nodes.rule(2, 0.0, nodes.leaf(left), nodes.leaf(right))
        return nodes.rule(2, -enough, nodes.leaf(right), nodes.rule(2, enough, slow, nodes.leaf(left)))

    root = nodes.leaf(hold)
    for cos in (0.95, 0.7, 0.4, 0.0, -0.5):
        # With m = l = 1 and g = 10, the energy is that of rest upright if speed² = 30 (1 - cos).
        root = nodes.rule(0, cos, pump(math.sqrt(30 * (1 - cos + 0.15))), root)
    return Controller(
        **nodes.arrays(root),
        laws=laws,
        observation_space=Box(np.array([-1.0, -1.0, -8.0]), np.array([1.0, 1.0, 8.0]), dtype=np.float64),
        action_space=Box(-2.0, 2.0, (1,), np.float64),
        observations=("cos(angle)", "sin(angle)", "speed [rad/s]"),
        actions=("torque [Nm]",),
    )


def python_loop(tree: Controller, angle: float, speed: float, steps: int) -> np.ndarray:
    """Return angle, speed and torque of every step of spaql's plant under the controller."""
    state = (angle, speed)
    rows = []
    for _ in range(steps):
        action = tree.predict(np.array(observe_pendulum(state)))[0]
        state, _, _ = step_pendulum(state, action)
        rows.append([*state, action[0]])
    return np.array(rows, np.float64)


def c_loop(program: Path, angle: float, speed: float, steps: int) -> np.ndarray:
    """Return the same, computed in C."""
    words = [str(program), str(steps), repr(angle), repr(speed)]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return np.array([[float.fromhex(x) for x in line.split()] for line in shown.splitlines()])


def main() -> None:
    """Export, compile, run, compare."""
    tree = swing_up()
    print(tree, end="\n\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check = spaql.export.c(tree, folder / "controller.c")
        print(f"compared at {sum(check.points.values()):,} points")
        program = folder / "plant"
        sources = [str(folder / "controller.c"), str(HERE / "plant.c")]
        subprocess.run(["cc", *FLAGS, f"-I{folder}", *sources, "-o", str(program), "-lm"], check=True)
        for angle, speed in ((math.pi, 0.0), (-2.0, 1.0), (0.5, -1.0), (3.0, -0.3)):
            ours = python_loop(tree, angle, speed, STEPS)
            shipped = c_loop(program, angle, speed, STEPS)
            if not np.array_equal(ours, shipped):
                raise SystemExit(f"They differ first in step {np.argmax((ours != shipped).any(axis=1))}.")
            up = np.cos(shipped[:, 0]) > 0.99
            first = len(up) - np.argmin(up[::-1]) if not up.all() else 0
            if first == len(up):
                raise SystemExit(f"From ({angle:.2f}, {speed}) it does not stay upright.")
            start = f"angle {angle:5.2f}, speed {speed:4.1f}"
            print(f"from {start}: {STEPS:,} equal steps, upright since {first * 0.05:.1f} s")


if __name__ == "__main__":
    main()
