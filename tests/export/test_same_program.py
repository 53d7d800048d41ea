"""What is proven is what is exported: one program, whose hash certificate and exported code carry."""

from pathlib import Path

import numpy as np
from click.testing import CliRunner

import spaql
from spaql import Controller
from spaql.cli import main
from spaql.controllers import Laws
from spaql.plugins.certificates.certificate import check_of_run, save_certificate
from spaql.plugins.certificates.check import check_certificate


def start(rng):
    return (rng.uniform(-1.0, 1.0),)


def step(state, action):
    x = 0.9 * state[0] + 0.2 * action[0]
    return (x,), -x * x, abs(x) > 4.0


PLANT = spaql.Dynamics(
    id="test/Same-v0",
    start=start,
    step=step,
    observations={"x": (-5.0, 5.0)},
    actions={"u": (-1.0, 1.0)},
    horizon=50,
)


def saved(path: Path, gain: float) -> Path:
    problem = spaql.make_problem(PLANT)
    tree = Controller(
        laws=Laws(np.array([[[gain]]]), np.zeros((1, 1))),
        observation_space=problem.states.space,
        action_space=problem.actions.space,
    )
    spaql.Design(tree, problem).save(path)
    return path


def test_a_constant_that_changes_in_between_is_noticed_on_both_sides(tmp_path: Path) -> None:
    run = saved(tmp_path / "run.spaql", -0.5)
    moved = saved(tmp_path / "moved.spaql", float(np.nextafter(-0.5, 0.0)))
    code = tmp_path / "controller.c"
    certificate = tmp_path / "proof.cert"
    spaql.export.c(run, code, points=100)
    save_certificate(spaql.verify(spaql.load(run)), certificate)
    document = check_certificate(certificate)
    assert f"program sha256 {document.data['program']}" in code.read_text()
    for controller, same in ((run, True), (moved, False)):
        checked = CliRunner().invoke(main, ["export", str(controller), "--check", str(code)])
        assert (checked.exit_code == 0) == same, checked.output
        assert check_of_run(certificate, spaql.load(controller)).holds == same
