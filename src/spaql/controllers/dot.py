"""The rules of a controller as a Graphviz graph."""

from __future__ import annotations

from collections.abc import Iterator

from spaql.controllers.controller import Controller
from spaql.controllers.text import leaf_text
from spaql.controllers.wording import number_text
from spaql.languages import in_dot


def dot(tree: Controller, digits: int | None = 3) -> str:
    """Return the rules of a controller in Graphviz's language, DOT.

    Rules that occur at several places of the tree are drawn once, with an arrow from each of them; leaves are
    drawn at every place.

    Parameters
    ----------
    tree
        The tree.
    digits
        Round numbers to this many digits; with None each has as many as identify it.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("pendulum", seed=0).learn(iterations=10, progress_bar=False)
    >>> print(dot(spaql.controller_of(agent)).splitlines()[3])
      n0 [label="sin(angle) < 0.5"];
    """
    return "\n".join(["digraph policy {", *_lines(tree, digits), "}", ""])


def _lines(tree: Controller, digits: int | None) -> Iterator[str]:
    yield '  node [shape=box, style=rounded, fontname="sans-serif"];'
    yield '  edge [fontname="sans-serif"];'
    names = tree.number_names(digits)
    for i in range(tree.n_nodes):
        if tree.feature[i] < 0:
            continue
        question = f"{names[tree.feature[i]]} < {number_text(float(tree.threshold[i]), digits)}"
        yield f"  n{i} [label={in_dot(question)}];"
    if tree.feature[0] < 0:
        yield _leaf("l0", tree, 0, digits)
    for i in range(tree.n_nodes):
        if tree.feature[i] < 0:
            continue
        for answer, child in (("yes", int(tree.left[i])), ("no", int(tree.right[i]))):
            name = f"n{child}"
            if tree.feature[child] < 0:
                name = f"l{i}{answer}"
                yield _leaf(name, tree, child, digits)
            yield f"  n{i} -> {name} [label={answer}];"


def _leaf(name: str, tree: Controller, node: int, digits: int | None) -> str:
    text = leaf_text(tree, int(tree.leaf[node]), digits)
    return f'  {name} [label={in_dot(text)}, style=filled, fillcolor="#e6e6e6"];'
