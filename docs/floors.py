"""Draw the floors of the house from the contract in `pyproject.toml`: `python docs/floors.py`."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILE = ROOT / "docs" / "pictures" / "floors.svg"
LIVES_THERE = {
    "cli": "one file per command",
    "figures": "a record, then a drawing",
    "experiments": "runs, sweeps, results",
    "checks": "batteries for users",
    "baselines": "other libraries",
    "training": "loop, agents, stress",
    "export": "C, PLC, ONNX, proven",
    "algorithms": "AQL, SPAQL, PlanTree",
    "interpret": "rule trees, for people",
    "model": "the learned plant, as rules",
    "policy": "the waist: raw observation in, raw action out",
    "partition": "balls in the cube",
    "problems": "environments, plants",
    "spaces": "into the cube, and back",
    "stats": "intervals, tests",
    "archive": "the model file",
    "tables": "Markdown, CSV, HTML",
    "workers": "processes",
    "kernels": "Numba: arrays and scalars only",
    "values": "what a caller gave, as Python's own numbers",
    "errors": "what to do next",
    "words": "how many, in words",
}
WIDTH, HEIGHT, GAP = 760, 46, 8
STYLE = (
    "text{font-family:Verdana,Arial,sans-serif;text-anchor:middle}"
    ".b{font-size:14px;font-weight:bold}.s{font-size:11px}"
)


def floors() -> list[list[str]]:
    """Read the floors, from the roof down; rooms of one floor never see each other."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[room.strip().removeprefix("spaql.") for room in layer.split("|")] for layer in layers]


def svg() -> str:
    """Draw a box for each room; what is above may import what is below."""
    rows = floors()
    height = len(rows) * (HEIGHT + GAP) + GAP
    shapes = []
    for level, rooms in enumerate(rows):
        wide = (WIDTH - GAP * (len(rooms) + 1)) / len(rooms)
        y = GAP + level * (HEIGHT + GAP)
        for i, room in enumerate(rooms):
            x = GAP + i * (wide + GAP)
            fill = "#F5A623" if room == "policy" else "#E8F1F8"
            middle = x + wide / 2
            shapes += [
                f'<rect x="{x:.0f}" y="{y}" width="{wide:.0f}" height="{HEIGHT}" rx="5" fill="{fill}" '
                'stroke="#7A8B99"/>',
                f'<text class="b" x="{middle:.0f}" y="{y + 20}">{room}</text>',
                f'<text class="s" x="{middle:.0f}" y="{y + 37}">{LIVES_THERE.get(room, "")}</text>',
            ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}">'
    ground = f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", ground, *shapes, "</svg>"]) + "\n"


if __name__ == "__main__":
    FILE.write_text(svg())
    print(FILE)
