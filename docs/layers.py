"""Draw the layers of the package from the contract in `pyproject.toml`: `python docs/layers.py`."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILE = ROOT / "docs" / "pictures" / "layers.svg"
CONTENTS = {
    "plugins": "what the core can do without",
    "cli": "one file per command",
    "figures": "compute a record, then draw it",
    "checks": "checks of your environment or algorithm",
    "zoo": "trained controllers that ship",
    "evaluation": "fresh episodes, stress tests, robustness",
    "agents": "learn, predict, save, load; training loop, history, run folders",
    "algorithms": "AQL, SPAQL, SPAQL-TS, PlanTree, TreeSearch",
    "verify": "statements about closed loops: proven, refuted or undecided",
    "export": "C, PLC, ONNX, Python, JSON; equivalence check",
    "classical": "PID and LQR, tuned",
    "learned_plants": "piecewise affine: print, simulate",
    "simulate": "plays episodes, compiled or in Gymnasium, and counts every step",
    "controllers": "raw observation in, raw action out: features, rules, laws; build, simplify, edit",
    "partition": "balls over the standard cube",
    "problems": "environments, equations of plants",
    "program": "expressions, tapes",
    "spaces": "raw units to cube",
    "stats": "intervals, tests",
    "archive": "agent files",
    "leases": "folder locks",
    "tables": "Markdown, CSV",
    "workers": "processes",
    "kernels": "Numba functions over arrays: partition, plantree, trees",
    "entry_points": "what packages declare",
    "values": "validates numbers that a caller passes",
    "errors": "exceptions",
    "formatting": "numbers as text",
    "languages": "text of any origin",
    "registration": "ids of plants",
}
WIDTH = 760
HEIGHT = 46
GAP = 8
STYLE = (
    "text{font-family:Verdana,Arial,sans-serif;text-anchor:middle}"
    ".b{font-size:14px;font-weight:bold}.s{font-size:11px}"
)


def layers() -> list[list[str]]:
    """Return the modules of each layer, from the top down; modules of one layer do not import each other."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[module.strip().removeprefix("spaql.") for module in row.split("|")] for row in rows]


def svg() -> str:
    """Return the drawing: a box for each module; a module may import what is drawn below it."""
    rows = layers()
    height = len(rows) * (HEIGHT + GAP) + GAP
    shapes = []
    for level, modules in enumerate(rows):
        wide = (WIDTH - GAP * (len(modules) + 1)) / len(modules)
        y = GAP + level * (HEIGHT + GAP)
        for i, module in enumerate(modules):
            x = GAP + i * (wide + GAP)
            fill = "#F5A623" if module == "controllers" else "#E8F1F8"
            middle = x + wide / 2
            shapes += [
                f'<rect x="{x:.0f}" y="{y}" width="{wide:.0f}" height="{HEIGHT}" rx="5" fill="{fill}" '
                'stroke="#7A8B99"/>',
                f'<text class="b" x="{middle:.0f}" y="{y + 20}">{module}</text>',
                f'<text class="s" x="{middle:.0f}" y="{y + 37}">{CONTENTS[module]}</text>',
            ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}">'
    background = f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", background, *shapes, "</svg>"]) + "\n"


if __name__ == "__main__":
    FILE.write_text(svg())
    print(FILE)
