"""Controllers with memory as code: action and state are the same at every sample, and faults are found."""

import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import spaql
from feature_controllers import ALL, random_controller, two_leaf_pi
from memory_targets import MANUAL, TARGETS
from spaql import SettingError
from spaql.controllers import Controller, Error, Lag, LowPass, Observed
from spaql.controllers.features import FEATURES
from spaql.errors import ArchiveError
from spaql.export import EquivalenceError, controller_from_json
from spaql.export.episodes import episodes
from spaql.export.equivalence import check_equivalence
from spaql.export.json_form import SCHEMA
from spaql.export.languages.python import Python
from spaql.export.languages.st_reader import FunctionBlock
from spaql.export.machine import machine_of

SUFFIX = {kind: target.suffix for kind, target in TARGETS.items()}
SLOW = {"octave", "micropython"}
"""Interpreters that take up to a millisecond for a sample."""


def check(kind: str, machine, folder: Path, samples: int = 2000, change=None) -> dict[str, int]:
    target = TARGETS[kind]
    files = target.write(machine, "controller")
    if change is not None:
        name = f"controller{SUFFIX[kind]}"
        text = files[name].decode()
        files[name] = change(text).encode()
        assert files[name].decode() != text
    return check_equivalence(target, machine, files, "controller", folder, samples).points


@pytest.mark.parametrize("kind", TARGETS)
def test_a_two_leaf_pi_controller_with_a_rate_limit_is_written_and_compared(kind, tmp_path):
    path = tmp_path / f"controller{SUFFIX[kind]}"
    found = getattr(spaql.export, kind)(two_leaf_pi(), path, points=4000)
    assert path.exists()
    kinds = {"random samples", "samples at boundaries", "samples without a valid reading"}
    further = {"samples in manual mode", "samples with tracking"} if kind in MANUAL else set()
    assert set(found.points) == {*kinds, "resets", *further}
    assert all(count > 10 for count in found.points.values())
    assert sum(found.points[one] for one in kinds) == 4000


@pytest.mark.long
@pytest.mark.parametrize("kind", TARGETS)
def test_a_million_samples_have_no_difference(kind, tmp_path):
    samples = 100_000 if kind in SLOW else 1_000_000
    counts = check(kind, machine_of(two_leaf_pi()), tmp_path, samples)
    kinds = ("random samples", "samples at boundaries", "samples without a valid reading")
    assert sum(counts[one] for one in kinds) == samples


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("seed", range(3))
def test_every_feature_and_limit_is_the_same_in_every_format(kind, seed, tmp_path):
    safe = {} if seed else {"safe_action": [0.25, 0.125]}
    number = "float" if seed == 2 and kind in ("c", "st", "onnx", "plcopen", "rust") else "double"
    margins = (0.2, *[0.0] * (len(ALL) - 1), 0.3)
    controller = random_controller(seed + 2, hysteresis=margins if seed == 1 else ())
    check(kind, machine_of(controller, number, **safe), tmp_path)


def test_random_controllers_have_both_forms_hysteresis_and_dead_bands():
    drawn = [random_controller(seed) for seed in range(2, 5)]
    assert {one.form for one in drawn} == {"position", "velocity"}
    assert any(np.any(one.dead_band) for one in drawn)


def replaced(old: str, new: str):
    return lambda text: text.replace(old, new)


FAULTS = {
    "a gain in its last digit": replaced("3.1 *", "3.1000000000000005 *"),
    "the other side of a cut": lambda text: re.sub(r"error < (LREAL#)?0.4", r"error <= \g<1>0.4", text),
    "a threshold by one bit": replaced("0.4", "0.4000000000000001"),
    "no anti-windup": lambda text: re.sub(r"waits (:?=) .*?(;?)\n", r"waits \1 False\2\n", text),
    "the rate limit": replaced("1.5", "1.4999999999999998"),
    "a clamp": replaced("2.5:", "2.6:"),
    "the sample time of the integral": replaced("0.5 * error)", "0.50000000000000011 * error)"),
    "the leaf": lambda text: re.sub(r"leaf (:?=) 2", r"leaf \1 3", text),
    "the value at a reset": lambda text: re.sub(r"(last_pump :?=) (LREAL#)?0.0", r"\1 \g<2>0.001", text),
    "the action that is remembered": replaced("last_pump = pump_v", "last_pump = pump_v + 1e-9"),
    "a reading that is not valid": replaced("1e+30", "1e+31"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault, tmp_path):
    with pytest.raises(EquivalenceError, match="differs from the policy, so no file is written"):
        check("python", machine_of(two_leaf_pi(limit=2.5)), tmp_path, 20_000, FAULTS[fault])


C_FAULTS = {
    "a gain": replaced("3.1 *", "3.1000000000000005 *"),
    "a reset": replaced("state->m_integral = 0.0;", "state->m_integral = 1.0;"),
    "no anti-windup": replaced("waits = 1;", "waits = 0;"),
    "hysteresis": replaced("error < 0.5)", "error < 0.4)"),
    "the integral in manual mode": replaced("1.4285714285714286 *", "1.4285714285714284 *"),
    "the mode": replaced("_sample(state, observation, 1,", "_sample(state, observation, 0,"),
    "the action that was applied": replaced("state->last_pump = applied_pump_v;", ""),
}


@pytest.mark.parametrize("fault", C_FAULTS)
def test_planted_faults_are_found_in_c(fault, tmp_path):
    with pytest.raises(EquivalenceError, match="differs from the policy"):
        check("c", machine_of(two_leaf_pi(hysteresis=(0.1, 0.0))), tmp_path, 20_000, C_FAULTS[fault])


@pytest.mark.parametrize(
    "change",
    [
        replaced("IF reset THEN\n    started := FALSE;", "IF reset THEN\n"),
        replaced("m_level_before_2 := m_level_before_1", "m_level_before_2 := m_level_before_2"),
        replaced("m_slow := slow;", ""),
    ],
)
def test_planted_faults_of_the_memory_are_found_in_structured_text(change, tmp_path):
    features = (Observed("level"), Lag("level before", "level", 2), LowPass("slow", "level", 3.0))
    controller = two_leaf_pi()
    lagging = Controller.of_laws(
        features,
        {"pump": {"level": 1.0, "level before": 0.5, "slow": 0.25}},
        observation_space=controller.observation_space,
        action_space=controller.action_space,
        observations=controller.observations,
        actions=controller.actions,
        sample_time=1.0,
    )
    check("st", machine_of(lagging), tmp_path, 2000)
    with pytest.raises(EquivalenceError, match="differs"):
        check("st", machine_of(lagging), tmp_path, 2000, change)


def test_no_file_is_written_where_it_is_refused(tmp_path):
    controller = two_leaf_pi()
    for message, refused in {
        "The safe action is": lambda: spaql.export.c(controller, tmp_path / "a.c", safe_action=[11.0]),
    }.items():
        with pytest.raises(SettingError, match=message):
            refused()
    with pytest.raises(SettingError, match="acts as the controller itself"):
        spaql.export.ExportedPolicy(controller)
    assert not list(tmp_path.iterdir())


def test_boundaries_are_found_to_the_last_bit():
    machine = machine_of(two_leaf_pi(rate_limit=()))
    part = next(episodes(machine, 20_000))
    error = part.inputs[..., 1] - part.inputs[..., 0]
    near = np.abs(error - 0.4) < 1e-15
    assert {1.0, 2.0} <= set(part.states[near][:, 1].tolist())
    assert near.sum() > 20


def test_the_header_says_how_it_is_used(tmp_path):
    spaql.export.c(two_leaf_pi(), tmp_path / "pump.c", points=100, provenance=["made by hand"])
    header = (tmp_path / "pump.h").read_text()
    assert "#define PUMP_SAMPLE_TIME 0.5 /* seconds between samples */" in header
    assert "void pump_reset(pump_state *state);" in header
    for words in ("made by hand", "error [m] = set-point - level", "Manual mode", "bumpless transfer"):
        assert words in header
    assert (tmp_path / "pump.c").read_text().isascii()


def played(text: str):
    namespace: dict = {}
    exec(text, namespace)
    return namespace["Controller"]()


def exported(controller: Controller):
    files = Python().write(machine_of(controller), "controller")
    return played(files["controller.py"].decode())


def test_ten_minutes_of_a_closed_loop_are_the_same(tmp_path):
    controller = two_leaf_pi(hysteresis=(0.05, 0.0))
    code = exported(controller)
    memory = controller.new_memory(1)
    levels = [0.0, 0.0]
    actions = []
    for step in range(1200):
        setpoint = (0.5, 1.5, 1.0)[step // 400]
        done = [code.act([levels[0], setpoint])[0]]
        done.append(float(controller.sample(np.array([[levels[1], setpoint]]), memory).action[0, 0]))
        levels = [x + 0.5 * (0.1 * u - 0.3 * x) for x, u in zip(levels, done, strict=True)]
        actions.append(done)
    assert all(one == other for one, other in actions)
    assert levels[0] == levels[1]
    assert abs(levels[0] - 1.0) < 1e-6


def test_transfer_from_manual_mode_is_bumpless_in_velocity_form():
    features = (Error("error", "set-point", "level"),)
    controller = two_leaf_pi()
    code = exported(
        Controller.of_laws(
            features,
            {"pump": {"error": 0.5}},
            observation_space=controller.observation_space,
            action_space=controller.action_space,
            observations=controller.observations,
            actions=controller.actions,
            sample_time=1.0,
            form="velocity",
        )
    )
    for _ in range(5):
        code.act([0.2, 1.0])
        code.last_pump = code.target_pump = 6.25
    assert code.act([1.0, 1.0]) == (6.25,)
    assert code.act([0.0, 1.0]) == (6.75,)


def test_transfer_from_manual_mode_is_bumpless_in_position_form():
    code = exported(two_leaf_pi(rate_limit=()))
    for _ in range(5):
        code.act([0.9, 1.0])
    manual = 6.25
    code.last_pump = code.target_pump = manual
    code.m_integral += (manual - (3.1 * 0.1 + 0.7 * code.m_integral)) / 0.7
    assert code.act([0.9, 1.0])[0] == pytest.approx(manual, abs=1e-9)


def test_json_follows_its_schema_and_is_read_back(tmp_path):
    schema = json.loads(SCHEMA.read_bytes())
    for seed, safe in ((0, None), (2, [0.25, 0.125])):
        controller = random_controller(seed)
        spaql.export.json(controller, tmp_path / "controller.json", points=200, safe_action=safe)
        jsonschema.validate(json.loads((tmp_path / "controller.json").read_bytes()), schema)
        assert str(controller_from_json(tmp_path / "controller.json")) == str(controller)
    kinds = [one["properties"]["kind"]["const"] for one in schema["$defs"]["feature"]["oneOf"]]
    assert kinds == list(FEATURES)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", 2),
        ("controller.memory.sample_time", -1.0),
        ("controller.memory.rate_limit", [0.0, 0.0, 0.0]),
        ("controller.features.0.kind", "exec"),
        ("arrays.left", [0, 0, 0]),
        ("arrays.laws.gain", [[["x"]]]),
        ("arrays", None),
    ],
)
def test_a_json_file_that_is_not_sound_is_refused(path, value, tmp_path):
    spaql.export.json(two_leaf_pi(), tmp_path / "controller.json", points=10)
    data = json.loads((tmp_path / "controller.json").read_bytes())
    *way, last = path.split(".") if not path.startswith("arrays.") else path.split(".", 1)
    inner = data
    for part in way:
        inner = inner[int(part)] if part.isdigit() else inner[part]
    inner[last] = value
    (tmp_path / "controller.json").write_text(json.dumps(data))
    with pytest.raises(ArchiveError):
        controller_from_json(tmp_path / "controller.json")


def test_a_function_block_keeps_its_variables(tmp_path):
    text = """FUNCTION_BLOCK Count
VAR_INPUT
    by : LREAL;
END_VAR
VAR_OUTPUT
    sum : LREAL;
END_VAR
VAR
    kept : LREAL := LREAL#2.5; (* it begins with this *)
END_VAR
IF by > LREAL#0.0 THEN
    kept := kept + by;
END_IF;
sum := kept;
END_FUNCTION_BLOCK
"""
    play = FunctionBlock.read(text).player(tmp_path, [])
    samples = np.array([[0.0, 1.0], [0.0, -1.0], [0.0, 2.0]])
    assert play(samples).tolist() == [[3.5], [3.5], [5.5]]
    assert play(samples[1:2]).tolist() == [[2.5]]


@pytest.mark.parametrize(
    "said", ["__import__('os').system('touch it')", "by.real", "[x for x in by]", "(lambda: by)()", "by if"]
)
def test_a_function_block_is_arithmetic_and_comparisons_only(said, tmp_path):
    text = "VAR_INPUT\n    by : LREAL;\nEND_VAR\nVAR_OUTPUT\n    sum : LREAL;\nEND_VAR\n"
    block = FunctionBlock.read(f"FUNCTION_BLOCK Count\n{text}sum := {said};\nEND_FUNCTION_BLOCK\n")
    with pytest.raises(SettingError, match="Unknown expression"):
        block.player(tmp_path, [])
