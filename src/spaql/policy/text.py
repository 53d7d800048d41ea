"""Rule trees as if-then rules to read."""

from __future__ import annotations

from collections.abc import Iterator

from gymnasium.spaces import Discrete

from spaql.policy.leaves import Choices, Constants
from spaql.policy.tree import RuleTree


def text(tree: RuleTree, digits: int | None = None, *, numbered: bool = False) -> str:
    """Write a rule tree as indented rules.

    Parameters
    ----------
    tree
        What to write; parts that it shares are written wherever they stand.
    digits
        Round numbers to so many digits. By default each has as many as identify it, so that the text is the
        controller; only what is next to 0, below 1e-300, is written as 0.
    numbered
        Write the number of each leaf after it, from 1 on.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("pendulum", seed=0).learn(iterations=10, progress_bar=False)
    >>> print(text(spaql.rule_tree(agent), digits=3).splitlines()[0])
    if sin(angle) < 0.5:
    """
    return "\n".join(_lines(tree, digits, numbered))


def _lines(tree: RuleTree, digits: int | None, numbered: bool) -> Iterator[str]:
    """Give the lines; what waits is on a stack, because a tree may be deeper than Python's."""
    waiting: list[tuple[int, int, str]] = [(0, 0, "start")]
    leaves = 0
    while waiting:
        node, level, role = waiting.pop()
        indent = "    " * level
        if tree.feature[node] < 0:
            if role == "else":
                yield f"{indent}else:"
                indent += "    "
            leaves += 1
            remark = f"  # leaf {leaves}" if numbered else ""
            yield indent + leaf_text(tree, int(tree.leaf[node]), digits) + remark
            continue
        word = "elif" if role == "else" else "if"
        threshold = number_text(float(tree.threshold[node]), digits)
        yield f"{indent}{word} {tree.observations[tree.feature[node]]} < {threshold}:"
        waiting.append((int(tree.right[node]), level, "else"))
        waiting.append((int(tree.left[node]), level + 1, "then"))


def leaf_text(tree: RuleTree, row: int, digits: int | None = None) -> str:
    """Say what is done in a leaf, given by its row in the table of leaves."""
    leaves, names = tree.leaves, tree.actions
    if isinstance(leaves, Choices):
        assert isinstance(tree.action_space, Discrete)
        return names[int(leaves.number[row]) - int(tree.action_space.start)]
    if isinstance(leaves, Constants):
        values = [number_text(float(value), digits) for value in leaves.value[row]]
        return ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
    laws = []
    for i, name in enumerate(names):
        sum_ = number_text(float(leaves.offset[row, i]), digits)
        for j, seen in enumerate(tree.observations):
            gain = float(leaves.gain[row, i, j])
            if gain != 0.0:
                sum_ += f" {'-' if gain < 0 else '+'} {number_text(abs(gain), digits)} * {seen}"
        bounds = (number_text(float(bound[i]), digits) for bound in (leaves.low, leaves.high))
        laws.append(f"{name} = clip({sum_}, {', '.join(bounds)})")
    return ", ".join(laws)


def number_text(x: float, digits: int | None) -> str:
    """Write a number: the shortest that is read as the same, or rounded.

    Where 0 is mapped into the cube with an error of rounding, thresholds may be the last floats before it.
    """
    if abs(x) < 1e-300:
        x = 0.0
    return repr(x) if digits is None else f"{x:.{digits}g}"
