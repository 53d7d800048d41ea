"""Rules of which one side has no observations."""

from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from spaql.controllers import Controller
from spaql.export.equivalence import check_equivalence
from spaql.export.languages.c import C
from spaql.export.languages.onnx import Onnx
from spaql.export.languages.python import Python
from spaql.export.machine import machine_of


@pytest.mark.parametrize("target", [C(), Onnx(), Python()], ids=["C", "ONNX", "Python"])
@pytest.mark.parametrize("second", [1.0, -np.inf], ids=["two leaves", "one leaf"])
def test_code_begins_at_the_first_rule_that_has_a_choice(target, second: float, tmp_path: Path) -> None:
    """Nothing is below -infinity: the rules on that side of the root are not in the code."""
    tree = Controller(
        feature=[0, 0, 0, -1, -1, -1, -1],
        threshold=[-np.inf, -1.0, second, 0.0, 0.0, 0.0, 0.0],
        left=[1, 3, 5, -1, -1, -1, -1],
        right=[2, 4, 6, -1, -1, -1, -1],
        leaf=[-1, -1, -1, 0, 1, 2, 3],
        laws=[0, 1, 2, 3],
        observation_space=Box(-4, 4, (1,), np.float64),
        action_space=Discrete(4),
    )
    machine = machine_of(tree)
    files = target.write(machine, "controller")
    check_equivalence(target, machine, files, "controller", tmp_path, 100)
