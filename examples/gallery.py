"""Animations: each problem under its controller, with the tree of the controller and the map of its actions.

`python examples/gallery.py --out docs/gallery` learns a controller for each problem and draws it, `--only
pendulum` for one. Controllers are cached in `--runs`, and drawn again without learning. It needs
`pip install "spaql[classic-control,plot]"`.
"""

import argparse
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import gymnasium
import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image, ImageChops, ImageDraw, ImageFont

import spaql
from spaql.agents import Design
from spaql.evaluation import size_curve
from spaql.figures import MapRecord, TreeRecord, compute_map, compute_tree, draw

WIDTH, HIGH, PAD = 960, 360, 12
"""Pixels: of a picture, of its upper half, and around its parts."""
MAP_DPI = 70
TREE_DPI = 92
LIT = (0.96, 0.65, 0.14)
"""The colour of the active leaf, where leaves have no colours of their own."""
INK = (34, 34, 34)
PAPER = (255, 255, 255)
TRAIL = (255, 255, 255)


@dataclass(frozen=True, kw_only=True)
class Show:
    """A problem, how its controller is learned, and what is shown of it."""

    name: str
    env: str
    learn: Callable[[], spaql.Agent]
    x: str
    y: str
    cost: str
    """What it was learned from, as text."""
    leaves: int | None = None
    """Draw the best tree with at most this many leaves, if the policy is not a small tree itself."""
    at: dict[str, float] = field(default_factory=dict)
    episode: int = 0
    """The seed of the episode."""
    steps: int = 200
    every: int = 2
    """Steps per frame."""
    delay: int = 70
    """Duration of a frame in milliseconds."""


def planned(
    name: str, env: str, x: str, y: str, *, seed: int = 0, budget: int = 10_000, **shown: int
) -> Show:
    """Show what PlanTree learns with its default settings."""

    def learn() -> spaql.Agent:
        return spaql.PlanTree(env, seed=seed).learn(total_timesteps=budget)

    return Show(name=name, env=env, learn=learn, x=x, y=y, cost=f"PlanTree, {budget:,} steps", **shown)


SHOWS = (
    # The README's first controller.
    planned("pendulum", "Pendulum-v1", "angle", "speed", seed=1, budget=5_000, episode=8, steps=120),
    planned("cartpole", "CartPole-v1", "pole angle", "pole speed", every=3),
    planned("mountain-car", "MountainCar-v0", "position", "speed"),
    planned("mountain-car-continuous", "MountainCarContinuous-v0", "position", "speed", steps=600, every=4),
    planned("acrobot", "Acrobot-v1", "angle 1", "speed 1", every=1, delay=100),
    Show(
        name="cartpole200",
        env="CartPole-v1",
        learn=lambda: spaql.SPAQLTS("cartpole200", scaling=20, rollouts=100, seed=1).learn(iterations=1000),
        x="pole angle",
        y="pole speed",
        cost="SPAQL-TS, 1,000 iterations",
        leaves=10,
        every=3,
    ),
    Show(
        name="pendulum5",
        env="Pendulum-v1",
        learn=lambda: spaql.SPAQL("pendulum5", scaling=4, rollouts=20, seed=1).learn(iterations=2000),
        x="angle",
        y="speed",
        cost="SPAQL, 2,000 iterations",
        leaves=24,
        episode=8,
    ),
)


@dataclass(frozen=True)
class Moment:
    """A step of the episode that is shown."""

    image: Image.Image
    observation: np.ndarray
    leaf: int
    total: float
    number: int


def design_of(show: Show, runs: Path) -> Design:
    """Return the cached controller of an earlier call, or learn it."""
    file = runs / f"{show.name}.spaql"
    if not file.exists():
        agent = show.learn()
        tree = spaql.controller_of(agent)
        if show.leaves is not None:
            tree = [one.tree for one in size_curve(agent) if one.tree.n_leaves <= show.leaves][-1]
        runs.mkdir(parents=True, exist_ok=True)
        Design(tree, agent.problem).save(file)
    return Design.load(file)


def moments(show: Show, tree: spaql.Controller) -> Iterator[Moment]:
    """Play the episode in Gymnasium's own environment."""
    with closing(gymnasium.make(show.env, render_mode="rgb_array")) as env:
        observation, _ = env.reset(seed=show.episode)
        total = 0.0
        ended = False
        step = 0
        while not ended and step <= show.steps:
            seen = np.asarray(observation, np.float64)
            leaf = tree.leaf_number(seen)
            observation, reward, terminated, truncated, _ = env.step(tree.predict(observation)[0])
            total = total + float(reward)
            ended = terminated or truncated
            if step % show.every == 0 or ended:
                yield Moment(Image.fromarray(np.asarray(env.render())), seen, leaf, total, step)
            step += 1


def shorter(text: str) -> str:
    """Return a law without units and multiplication signs."""
    return re.sub(r" \[[^]]*\]", "", text).replace(" * ", " ")


def tree_pictures(record: TreeRecord) -> list[Image.Image]:
    """Draw the tree once for each leaf, highlighted while the others are pale."""
    places = [i for i, node in enumerate(record.nodes) if node.colour]
    coloured = len({record.nodes[i].colour for i in places}) > 1
    pictures = []
    for lit in places:
        nodes = list(record.nodes)
        for i in places:
            pale = tuple(0.8 + 0.2 * part for part in nodes[i].colour) if coloured else (0.95, 0.95, 0.95)
            full = nodes[i].colour if coloured else LIT
            nodes[i] = replace(nodes[i], text=shorter(nodes[i].text), colour=full if i == lit else pale)
        pictures.append(painted(replace(record, title="", note="", nodes=tuple(nodes)), TREE_DPI)[0])
    return pictures


def painted(record: TreeRecord | MapRecord, dpi: int) -> tuple[Image.Image, Figure]:
    """Draw a record into pixels."""
    figure = draw(record)
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3]), figure


def cropped(images: list[Image.Image]) -> list[Image.Image]:
    """Remove the margin that is empty in all images."""
    empty = Image.new("RGB", images[0].size, images[0].getpixel((0, 0)))
    boxes = [box for image in images if (box := ImageChops.difference(image, empty).getbbox())]
    left, top = (max(min(box[i] for box in boxes) - 2 * PAD, 0) for i in (0, 1))
    right, bottom = (min(max(box[i] for box in boxes) + 2 * PAD, empty.size[i - 2]) for i in (2, 3))
    return [image.crop((left, top, right, bottom)) for image in images]


def placed(image: Image.Image, width: int, height: int) -> Image.Image:
    """Fit an image into a box, and centre it there on white."""
    scale = min(width / image.width, height / image.height)
    small = image.resize((round(scale * image.width), round(scale * image.height)), Image.Resampling.LANCZOS)
    sheet = Image.new("RGB", (width, height), PAPER)
    sheet.paste(small, ((width - small.width) // 2, (height - small.height) // 2))
    return sheet


def fitted(image: Image.Image) -> Image.Image:
    """Fit an image to the width of the picture, from the left; it is never enlarged."""
    scale = min(WIDTH / image.width, 1.0)
    small = image.resize((round(scale * image.width), round(scale * image.height)), Image.Resampling.LANCZOS)
    sheet = Image.new("RGB", (WIDTH, small.height), PAPER)
    sheet.paste(small)
    return sheet


def animation(show: Show, design: Design) -> list[Image.Image]:
    """Compose the frames: the plant and the map, above the tree with the active leaf."""
    tree = design.controller
    record = compute_map(design, show.x, show.y, at=show.at, episodes=5, resolution=200)
    chart, figure = painted(replace(record, title="", note=""), MAP_DPI)
    trees = [fitted(one) for one in tree_pictures(compute_tree(tree))]
    fresh = spaql.evaluate(design, episodes=100, seed=1)
    words = f"{show.env}: {tree.n_leaves} leaves ({show.cost}), return {fresh.mean:.0f} ± {fresh.ci95:.0f}"
    fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    bold, plain = (
        ImageFont.truetype(fonts / f"{name}.ttf", 15) for name in ("DejaVuSans-Bold", "DejaVuSans")
    )
    found = list(moments(show, tree))
    motion = cropped([moment.image for moment in found])
    seen = np.array([moment.observation for moment in found])
    spots = places_on(figure, record, show, seen, chart.height)
    top = 34
    left = WIDTH - chart.width
    frames = []
    for i, moment in enumerate(found):
        frame = Image.new("RGB", (WIDTH, top + HIGH + PAD + trees[0].height), PAPER)
        pen = ImageDraw.Draw(frame)
        pen.text((PAD, 8), words, INK, bold)
        frame.paste(placed(motion[i], left - 2 * PAD, HIGH - top), (PAD, 2 * top))
        corner = left, top + (HIGH - chart.height) // 2
        frame.paste(chart, corner)
        draw_trail(pen, spots[: i + 1] + np.array(corner), chart.width / 2)
        pen.text((PAD, top + 2), f"step {moment.number}, return so far {moment.total:.0f}", INK, plain)
        frame.paste(trees[moment.leaf - 1], (0, top + HIGH + PAD))
        frames.append(frame)
    return frames


def places_on(figure: Figure, record: MapRecord, show: Show, seen: np.ndarray, height: int) -> np.ndarray:
    """Return the pixels of observations on the map, counted from its upper left corner."""
    along = [read_axis(label, show, seen) for label in (show.x, show.y)]
    along = [np.clip(at, a.low, a.high) for at, a in zip(along, (record.x, record.y), strict=True)]
    pixels = figure.axes[0].transData.transform(np.stack(along, axis=1))
    return np.stack([pixels[:, 0], height - pixels[:, 1]], axis=1)


def read_axis(name: str, show: Show, seen: np.ndarray) -> np.ndarray:
    """Return the coordinates of observations along an observation, or an angle given by cosine and sine."""
    names = [re.sub(r" \[[^]]*\]", "", one) for one in spaql.make_problem(show.env).states.names]
    if name in names:
        return seen[:, names.index(name)]
    return np.arctan2(seen[:, names.index(f"sin({name})")], seen[:, names.index(f"cos({name})")])


def draw_trail(pen: ImageDraw.ImageDraw, spots: np.ndarray, jump: float) -> None:
    """Draw the trajectory and the current state; where an angle wraps around, the line is broken."""
    for a, b in pairwise(spots):
        if abs(a[0] - b[0]) < jump:
            for colour, width in ((TRAIL, 5), (INK, 2)):
                pen.line([*a, *b], colour, width)
    x, y = spots[-1]
    pen.ellipse([x - 7, y - 7, x + 7, y + 7], fill=tuple(round(255 * part) for part in LIT), outline=INK)


def save(frames: list[Image.Image], file: Path, delay: int) -> None:
    """Write a GIF with one palette for all frames, so that only changed pixels are written again."""
    palette = frames[len(frames) // 2].quantize(128, Image.Quantize.MAXCOVERAGE)
    white = [255 if part > 248 else part for part in palette.getpalette() or []]
    palette.putpalette(white)
    images = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    file.parent.mkdir(parents=True, exist_ok=True)
    durations = [delay] * (len(images) - 1) + [1500]
    images[0].save(file, save_all=True, append_images=images[1:], duration=durations, loop=0, optimize=True)


def main() -> None:
    """Learn, play, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("gallery"))
    parser.add_argument("--runs", type=Path, default=Path("runs/gallery"))
    parser.add_argument("--only", choices=[show.name for show in SHOWS])
    given = parser.parse_args()
    for show in SHOWS:
        if given.only in (None, show.name):
            file = given.out / f"{show.name}.gif"
            save(animation(show, design_of(show, given.runs)), file, show.delay)
            print(f"{file}: {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
