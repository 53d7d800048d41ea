"""The idea of PlanTree in four pictures, on Pendulum: samples, cells, values, tree.

`python examples/plantree_pictures.py --out docs/plantree` learns from 5,000 steps and draws the state of the
learner; `--run FOLDER` uses an agent that `spaql train Pendulum-v1 --algo plantree` saved. It reads private
attributes of the algorithm, so it changes with them. It needs `pip install "spaql[plot]"`.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import ListedColormap
from PIL import Image

import spaql
from spaql.algorithms.plantree.explore import Plan
from spaql.figures.style import multiples_of_pi, new_figure, styled
from spaql.kernels.plantree.pwa_model import find_all

N = 220
"""Points along each axis of a map."""
FAST = 8.0
"""The largest speed, in rad/s."""
EXTENT = (-np.pi, np.pi, -FAST, FAST)


def observations() -> np.ndarray:
    """Return the observation at every point of a map: angle from left to right, speed from bottom to top."""
    angle, speed = np.meshgrid(np.linspace(-np.pi, np.pi, N), np.linspace(-FAST, FAST, N))
    return np.stack([np.cos(angle), np.sin(angle), speed], axis=-1).reshape(-1, 3)


def angles(seen: np.ndarray) -> np.ndarray:
    """Return the angle of observations, 0 upright."""
    return np.arctan2(seen[:, 1], seen[:, 0])


def label(ax: Axes, title: str) -> None:
    """Label the axes and set the title."""
    ax.set(title=title, xlabel="angle [rad], 0 is upright", ylabel="speed [rad/s]")
    ax.label_outer()
    ax.set(xlim=EXTENT[:2], ylim=EXTENT[2:], xticks=[-np.pi, 0, np.pi])
    ax.xaxis.set_major_formatter(multiples_of_pi)
    ax.grid(visible=False)


def draw_samples(axes: list[Axes], learner: object, counts: tuple[int, int]) -> None:
    """Draw the steps taken up to two moments, coloured by their reward."""
    memory = learner.memory
    for ax, count in zip(axes, counts, strict=True):
        seen = memory.states[:count]
        shown = ax.scatter(
            angles(seen), seen[:, 2], c=memory.rewards[:count], s=4, cmap="viridis", vmin=-16, vmax=0
        )
        label(ax, f"the first {count:,} steps")
    axes[-1].figure.colorbar(shown, ax=axes, label="reward of the step")


def draw_cells(axes: list[Axes], learner: object, plan: Plan) -> None:
    """Draw the cells with one law of motion each, and the errors of their predictions."""
    z = plan.scale.z(observations())
    plant = plan.plant
    cells = find_all(plant.feature, plant.threshold, plant.left, int(plant.roots[0]), z)
    _, number = np.unique(cells, return_inverse=True)
    colours = np.random.default_rng(3).uniform(0.35, 0.95, (number.max() + 1, 3))
    axes[0].imshow(
        number.reshape(N, N), ListedColormap(colours), aspect="auto", origin="lower", extent=EXTENT
    )
    leaves = int((plant.feature[: len(plant.feature)] < 0).sum())
    label(axes[0], f"{leaves} cells, an affine law of motion in each")
    memory = learner.memory
    before = plan.scale.z(memory.states)
    after = plan.scale.z(memory.nexts)
    inputs = learner.code.inputs(memory.actions, squares=False)
    rows = find_all(plant.feature, plant.threshold, plant.left, int(plant.roots[0]), before)
    x = np.concatenate([np.ones((len(before), 1)), before, inputs], axis=1)
    told = np.einsum("nij,nj->ni", plant.law[rows], x)[:, : before.shape[1]]
    off = np.abs((told - after) * plan.scale.deviation)[:, 2]
    seen = memory.states
    shown = axes[1].scatter(angles(seen), seen[:, 2], c=off, s=4, cmap="magma_r", vmin=0, vmax=0.1)
    label(axes[1], "error of the next speed")
    axes[1].figure.colorbar(shown, ax=axes[1], label="rad/s")


def draw_values(axes: list[Axes], plan: Plan) -> None:
    """Draw the values in one of the random partitions, and in all of them."""
    z = plan.scale.z(observations())
    cells = plan.cells
    one = find_all(cells.feature, cells.threshold, cells.left, int(cells.roots[0]), z)
    value = np.where(cells.points[one] > 0, plan.plain[one], np.nan)
    low = float(np.nanquantile(value, 0.02))
    axes[0].set_facecolor("#dddddd")
    axes[0].imshow(
        value.reshape(N, N), "viridis", aspect="auto", origin="lower", extent=EXTENT, vmin=low, vmax=0
    )
    label(axes[0], "values in one of 20 random partitions")
    worth = plan.values_of(z).max(axis=1)
    shown = axes[1].imshow(
        worth.reshape(N, N), "viridis", aspect="auto", origin="lower", extent=EXTENT, vmin=low, vmax=0
    )
    label(axes[1], "look-ahead on the mean of all 20")
    axes[1].figure.colorbar(shown, ax=axes, label="discounted return from there")


def draw_tree(axes: list[Axes], agent: spaql.Agent, plan: Plan, actions: np.ndarray) -> None:
    """Draw the actions of look-ahead, and those of the tree."""
    seen = observations()
    best = plan.values_of(plan.scale.z(seen)).argmax(axis=1)
    tree = agent.policy
    for ax, torque, title in (
        (axes[0], 2 * actions[best, 0], "look-ahead: 5 torques tried, no rules"),
        (axes[1], tree.act(seen)[:, 0], f"the tree: {tree.n_leaves} leaves, a law in each"),
    ):
        shown = ax.imshow(
            torque.reshape(N, N), "PuOr", aspect="auto", origin="lower", extent=EXTENT, vmin=-2, vmax=2
        )
        label(ax, title)
    leaf = np.array([tree.leaf_number(one) for one in seen]).reshape(N, N)
    axes[1].contour(leaf, np.arange(1, tree.n_leaves) + 0.5, extent=EXTENT, colors="black", linewidths=0.8)
    axes[1].figure.colorbar(shown, ax=axes, label="torque [Nm]")


def main() -> None:
    """Learn or load an agent, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("plantree"))
    parser.add_argument("--run", type=Path, help="folder of a run")
    given = parser.parse_args()
    if given.run is None:
        agent = spaql.PlanTree("Pendulum-v1", seed=1)
        agent.learn(total_timesteps=5_000)
    else:
        agent = spaql.PlanTree.load(given.run)
    learner = agent._learner
    memory = learner.memory
    plan = learner.final_plan(np.random.default_rng(agent.seed))
    given.out.mkdir(parents=True, exist_ok=True)
    steps = len(memory)
    pictures = {
        "samples": ("1. Samples: where it has been", lambda a: draw_samples(a, learner, (600, steps))),
        "cells": ("2. Cells: how the plant moves", lambda a: draw_cells(a, learner, plan)),
        "values": ("3. Values: what states are worth", lambda a: draw_values(a, plan)),
        "tree": (
            "4. Tree: the plan, written down",
            lambda a: draw_tree(a, agent, plan, learner.code.tried()),
        ),
    }
    for name, (title, draw) in pictures.items():
        with styled():
            figure = new_figure(title, "", 3.5)
            draw(list(figure.subplots(1, 2, sharey=True)))
            canvas = FigureCanvasAgg(figure)
            figure.set_dpi(110)
            canvas.draw()
        pixels = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
        pixels.quantize(128, dither=Image.Dither.NONE).save(given.out / f"{name}.png", optimize=True)
        print(given.out / f"{name}.png")


if __name__ == "__main__":
    main()
