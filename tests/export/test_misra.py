"""C by MISRA C:2012: cppcheck finds nothing, what differs is named, and each rule is traced to its tests."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import spaql
import spaql.export
from export_forms import KINDS, SAFE
from feature_controllers import ALL, random_controller, two_leaf_pi
from random_trees import random_tree
from spaql import SettingError
from spaql.cli import main
from spaql.export.languages.c import C
from spaql.export.machine import machine_of
from spaql.export.misra import DEVIATIONS, check_misra


def trace(folder: Path) -> list[dict[str, str]]:
    with (folder / "controller_trace.csv").open(newline="") as file:
        return list(csv.DictReader(file))


CASES = [
    (form, number, kind, sums)
    for form in ("rules", "table")
    for number, kind, sums in (
        ("double", "choices", 0),
        ("fixed", "constants", 0),
        ("float", "laws", 2),
        ("double", "switching laws", 1),
    )
]


@pytest.mark.parametrize(("form", "number", "kind", "sums"), CASES)
def test_cppcheck_finds_no_violation(form: str, number: str, kind: str, sums: int, tmp_path: Path) -> None:
    tree = random_tree(np.random.default_rng(KINDS.index(kind)), 3, 12, kind, sums=sums)
    settings = {"form": form, "number": number, "safe_action": SAFE[kind], "standard": "misra"}
    found = spaql.export.c(tree, tmp_path / "controller.c", points=500, **settings)
    assert sorted(found.files) == [
        "controller.c", "controller.h", "controller_misra.md", "controller_timing.json",
        "controller_trace.csv",
    ]  # fmt: skip
    rows = trace(tmp_path)
    leaves = [f"leaf {node}" for node in np.flatnonzero(tree.feature < 0)]
    assert rows[0]["requirement"] == "no valid reading"
    assert sorted(row["requirement"] for row in rows[1:]) == sorted(leaves)
    counted = sum(int(row[name]) for row in rows for name in found.points if row.get(name))
    assert counted == sum(found.points.values())
    assert {row["result"] for row in rows} <= {"equal at all points", "not tested: no point was found"}
    machine = machine_of(tree, number, SAFE[kind])
    for row in rows[1:]:  # the first point is in its leaf
        if row["first point"]:
            point = np.array(row["first point"].split(), np.float64).astype(machine.number.dtype)
            assert f"leaf {machine.leaves(point[np.newaxis])[0]}" == row["requirement"]


@pytest.mark.parametrize("made", [0, 1, 2])
def test_cppcheck_finds_no_violation_with_memory(made: int, tmp_path: Path) -> None:
    margins = (0.2, *[0.0] * (len(ALL) - 1), 0.3)
    controller = [two_leaf_pi(), random_controller(3, hysteresis=margins), random_controller(4)][made]
    number = "float" if made == 2 else "double"
    found = spaql.export.c(
        controller, tmp_path / "controller.c", points=4000, standard="misra", number=number
    )
    rows = trace(tmp_path)
    labels = [row["requirement"] for row in rows]
    assert labels[:3] == ["no valid reading", "manual mode", "tracking"]
    assert len(rows) == controller.n_leaves + 3
    unread, manual, tracked, *leaves = (int(row["samples"]) for row in rows)
    assert unread + manual + sum(leaves) == 4000
    assert 0 < unread < found.points["samples without a valid reading"]  # others are in manual mode
    assert manual == found.points["samples in manual mode"]
    assert tracked == found.points["samples with tracking"]
    if not made:
        assert [row["condition"] for row in rows[3:]] == ["error < 0.4", "not error < 0.4"]
        assert labels[3:] == ["leaf 1", "leaf 2"]  # as in the code
        assert rows[3]["action"] == "3.1 * error + 0.7 * integral, within its limits"


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("action[0] = 4.0;", "goto end; end: action[0] = 4.0;", "15.1"),
        ("} else {", "} else if (x0 > 1.0) {", "15.7"),
        ("const double x1", "const double octal = 077; (void)octal; const double x1", "7.1"),
    ],
)
def test_a_violation_is_found(old: str, new: str, rule: str, tmp_path: Path) -> None:
    controller = machine_of(random_tree(np.random.default_rng(0), 3, 12), "double", 4)
    files = C("rules", standard="misra").write(controller, "controller")
    text = files["controller.c"].decode()
    head, found, tail = text.rpartition(old)
    assert found
    (tmp_path / "controller.h").write_bytes(files["controller.h"])
    (tmp_path / "controller.c").write_text(head + new + tail)
    with pytest.raises(spaql.SpaqlError, match=rf"controller\.c:\d+: misra-c2012-{rule}"):
        check_misra(tmp_path, "controller")


def test_deviations_are_written_out_and_only_they_are_suppressed(tmp_path: Path) -> None:
    spaql.export.c(two_leaf_pi(), tmp_path / "controller.c", points=100, standard="misra")
    text = (tmp_path / "controller_misra.md").read_text()
    assert "Cppcheck" in text
    assert all(f"- {rule}: {reason}" in text for rule, reason in DEVIATIONS.items())
    texts = [(tmp_path / f"controller.{suffix}").read_text() for suffix in ("c", "h")]
    marks = [line for text in texts for line in text.splitlines() if "suppress" in line]
    assert marks == ["/* cppcheck-suppress misra-c2012-2.5 */"]


def test_the_default_has_two_files(tmp_path: Path) -> None:
    tree = random_tree(np.random.default_rng(0), 3, 12)
    plain = C("table").write(machine_of(tree), "controller")
    assert list(plain) == ["controller.h", "controller.c"]
    with pytest.raises(SettingError, match="standard is 'cert', and must be 'misra'"):
        spaql.export.c(tree, tmp_path / "controller.c", standard="cert")


def test_the_command(tmp_path: Path) -> None:
    agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=2, seed=1).learn(
        iterations=5, progress_bar=False
    )
    agent.save(tmp_path / "agent.spaql")
    words = ["export", str(tmp_path / "agent.spaql"), "--out", str(tmp_path / "out"), "--points", "200"]
    words += ["--standard", "misra", "--json"]
    done = CliRunner().invoke(main, [*words, "--to", "c", "--safe-action", "push left", "--episodes", "2"])
    assert done.exit_code == 0, done.output
    files = json.loads(done.stdout)["files"]
    assert {"controller_trace.csv", "controller_timing.json"} < files.keys()
    refused = CliRunner().invoke(main, [*words, "--to", "python"])
    assert "There is no --standard for python" in refused.output
