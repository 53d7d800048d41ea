"""Costs and constraints as expressions: what is compiled, counted, kept and refused."""

import dataclasses
import math
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaql
from nightly import thorough
from spaql.archive import ArchiveError
from spaql.evaluation.robustness import with_parameters
from spaql.kernels.jit import njit
from spaql.problems.making import receive, send
from spaql.problems.stage_cost import Constraint, StageCost, constraints_of, reward_function
from spaql.program.compiled import FunctionSource
from spaql.program.functions import FUNCTIONS
from spaql.program.parser import Formula, parse
from spaql.simulate.batches import fresh_states

NAMES = ("x", "y", "force")
PLACES = {"x": "seen[0]", "y": "seen[1]", "force": "action[0]"}
EXACT = ("abs", "sign", "sqrt", "floor", "min", "max", "clip")
"""Functions that leave nothing to round otherwise."""
ROWS = np.array(
    [
        *np.random.default_rng(0).normal(0.0, 3.0, (200, 3)),
        *np.random.default_rng(1).integers(-3, 4, (200, 3)),
        *[
            [a, b, c]
            for a in (0.0, 1e300, math.inf, math.nan)
            for b in (-1.0, 0.0, -math.inf)
            for c in (0, 2)
        ],
    ]
)


def call(parts: tuple[str, list[str]]) -> str:
    name, arguments = parts
    form = FUNCTIONS[name]
    return f"{name}({', '.join((arguments * 3)[: form.most or max(form.fewest, len(arguments))])})"


def deeper(one: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(one, st.sampled_from(["+", "-", "*", "/", "%", "**"]), one)
    compared = st.tuples(
        one, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), one, st.sampled_from(["<", ">"]), one
    )
    return st.one_of(
        pairs.map(lambda p: f"({' '.join(p)})"),
        compared.map(lambda p: f"({' '.join(p)})"),
        st.tuples(one, st.sampled_from(["and", "or"]), one).map(lambda p: f"({' '.join(p)})"),
        one.map(lambda x: f"(not {x})"),
        one.map(lambda x: f"(-{x})"),
        st.tuples(one, one, one).map(lambda p: f"({p[0]} if {p[1]} else {p[2]})"),
        st.tuples(st.sampled_from(sorted(FUNCTIONS)), st.lists(one, min_size=1, max_size=3)).map(call),
    )


LEAVES = st.sampled_from([*NAMES, "pi", "0", "1", "2", "0.5", "1e3"])
EXPRESSIONS = st.recursive(LEAVES, deeper, max_leaves=12).filter(lambda text: len(text) < 500)


def interpreted(text: str) -> np.ndarray:
    return Formula.parse("cost", text, NAMES)(dict(zip(NAMES, ROWS.T, strict=True)))


def written(text: str) -> np.ndarray:
    source = FunctionSource(PLACES)
    value = source.function("value", "seen, action", source.add(parse("cost", text, NAMES)))
    with np.errstate(all="ignore"):
        return np.array([value(row[:2], row[2:]) for row in ROWS.tolist()])


def assert_equal(found: np.ndarray, wanted: np.ndarray, text: str) -> None:
    """The same numbers, infinities and NaN; to the last bit where every function is exact."""
    inexact = [name for name in FUNCTIONS if name not in EXACT and f"{name}(" in text]
    if inexact or "**" in text or "%" in text:
        # Functions may round otherwise, and what follows may enlarge that without bound, or cross a step.
        close = np.isclose(found, wanted, rtol=1e-6, atol=1e-9, equal_nan=True)
        assert close.mean() > 0.9, text
    else:
        np.testing.assert_array_equal(found, wanted, err_msg=text)


@settings(max_examples=thorough(300))
@given(EXPRESSIONS)
def test_a_written_function_equals_the_interpreted_expression(text: str) -> None:
    assert_equal(written(text), interpreted(text), text)


SIMPLE = [f"{name}({', '.join(NAMES[: form.most or 3])})" for name, form in FUNCTIONS.items()]
SIMPLE += ["x / y", "x % y", "x ** y", "force ** 2", "x < y < force"]
SIMPLE += ["x and y or not force", "x if y else force"]


@pytest.mark.parametrize("text", SIMPLE)
def test_a_single_operation_equals_numpy_everywhere(text: str) -> None:
    np.testing.assert_allclose(written(text), interpreted(text), rtol=4e-16 * 4, atol=0, err_msg=text)


@pytest.mark.slow
def test_compiled_code_equals_the_interpreted_expressions() -> None:
    """All operations in one kernel, which is compiled once."""
    source = FunctionSource(PLACES)
    values = [source.add(parse("cost", text, NAMES)) for text in SIMPLE]
    value = source.function("values", "seen, action", f"({', '.join(values)},)")

    def all_rows(rows: np.ndarray, out: np.ndarray) -> None:
        for i in range(len(rows)):
            for j, x in enumerate(value(rows[i, :2], rows[i, 2:])):
                out[i, j] = x

    out = np.zeros((len(ROWS), len(SIMPLE)))
    njit(all_rows, depends_on="".join(SIMPLE))(ROWS, out)
    for text, column in zip(SIMPLE, out.T, strict=True):
        np.testing.assert_allclose(column, interpreted(text), rtol=4e-16 * 4, atol=0, err_msg=text)


HOSTILE = [
    "__import__('os').system('true')",
    "x.__class__",
    "open('f')",
    "[x]",
    "speed; 1",
    "unknown**2",
    "",
    7,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_expressions_are_refused_everywhere(text: str) -> None:
    with pytest.raises(spaql.SettingError):
        cart("refused", cost=text)
    with pytest.raises(spaql.SettingError):
        cart("refused", constraints=[text])
    with pytest.raises(spaql.SettingError):
        spaql.make_problem("CartPole-v1", constraints=[text])


@pytest.mark.parametrize(
    ("constraints", "why"),
    [
        ("x < 1", "must be a list"),
        ([("x < 1", -2.0)], "price"),
        ([("x < 1", "much")], "price"),
        ([("x < 1", 1.0, 2.0)], "must be an expression"),
        ([("x < 1", 1.0), "x < 1"], "given twice"),
        ([3], "must be an expression"),
    ],
)
def test_constraints_of_another_form_are_refused(constraints: object, why: str) -> None:
    with pytest.raises(spaql.SettingError, match=why):
        constraints_of(constraints)


def test_names_that_are_written_alike_are_refused() -> None:
    with pytest.raises(spaql.SettingError, match="written 'x'"):
        StageCost.of("x", [], ["x [m]", "x [s]"], ["u"])


def test_expressions_move_to_other_names() -> None:
    stage = StageCost.of("sin(sin) + a**2", [("a < b", 1.0)], ["sin", "a"], ["b"])
    other = stage.renamed(["x [m]", "y"], ["sin"])
    assert other.cost == "sin(x) + y ** 2"
    assert other.constraints == (Constraint("y < sin", 1.0),)
    rows = np.random.default_rng(0).normal(size=(20, 2)), np.random.default_rng(1).normal(size=(20, 1))
    np.testing.assert_array_equal(other.rewards(np.zeros(20), *rows), stage.rewards(np.zeros(20), *rows))


def test_a_constraint_that_is_nan_is_broken() -> None:
    stage = StageCost.of(None, [("x", 2.0)], ["x"], ["u"])
    assert stage.broken(np.array([[math.nan], [1.0], [0.0]]), np.zeros((3, 1)))[:, 0].tolist() == [1, 0, 1]
    assert reward_function(stage, listed=False)(1.0, (math.nan,), [0.0]) == -1.0


def start(rng):
    """A cart anywhere, at rest."""
    return (rng.uniform(-1.0, 1.0), 0.0)


def step(state, action):
    """Push it for 0.1 s; the reward is one that a cost replaces."""
    x, v = state
    v += 0.1 * action[0]
    return (x + 0.1 * v, v), -abs(x), abs(x) > 2.0


def cart(name: str, **more):
    return spaql.Dynamics(
        id=f"test/{name}-v0",
        start=start,
        step=step,
        observations={"position [m]": (-5, 5), "speed": (-np.inf, np.inf)},
        actions={"force [N]": (-1, 1)},
        horizon=60,
        **more,
    )


def law(observations: np.ndarray) -> np.ndarray:
    """A law that overshoots."""
    return np.clip(-0.8 * observations[:, :1] - 0.2 * observations[:, 1:2], -1, 1)


class Law(spaql.Policy):
    def __init__(self, problem: spaql.Problem) -> None:
        self.observation_space = problem.states.space
        self.action_space = problem.actions.space

    def act(self, observations, steps, rng):
        return law(observations.astype(np.float64)).astype(np.float32)


COST = "position**2 + 0.1 * force**2"
CONSTRAINTS = ["abs(position) < 0.8", ("abs(speed) < 0.4", 2.0), "force > -0.7"]
PERTURBED = {"noise": {"position [m]": 0.05}, "delay": (1, 2), "gain": 0.1, "rate_limit": {"force [N]": 0.4}}


def slowly(plant: spaql.Dynamics, state: tuple[float, ...]) -> tuple[float, list[bool]]:
    """Play an episode by the functions in plain Python; returns the return, and what was broken."""
    _, play, observe = plant.functions
    plain = plant.observe
    total = 0.0
    broken = [False] * 3
    for _ in range(plant.horizon):
        seen = np.array([observe(state)], np.float32)
        action = law(seen.astype(np.float64))[0].astype(np.float32).astype(np.float64)
        state, _, ended = play(state, action.copy())
        position, speed = plain(state[:2])
        total -= position**2 + 0.1 * action[0] ** 2 + (0.0 if abs(speed) < 0.4 else 2.0)
        held = abs(position) < 0.8, abs(speed) < 0.4, action[0] > -0.7
        broken = [was or not holds for was, holds in zip(broken, held, strict=True)]
        if ended:
            break
    return total, broken


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, PERTURBED], ids=["plain", "disturbed"])
def test_broken_constraints_are_counted_as_a_slow_loop_counts_them(more: dict) -> None:
    plant = cart("Counted", cost=COST, constraints=CONSTRAINTS, **more)
    problem = spaql.make_problem(plant, measured=False)
    found = spaql.evaluate(Law(problem), problem, episodes=120, seed=3)
    states = fresh_states(Law(problem), problem, 120, 3)
    totals, broken = zip(*(slowly(plant, tuple(row)) for row in states.tolist()), strict=True)
    np.testing.assert_allclose(found.returns, totals, rtol=1e-9)
    np.testing.assert_array_equal(found.broken, np.array(broken))
    assert found.violations == {
        "abs(position) < 0.8": sum(row[0] for row in broken),
        "abs(speed) < 0.4": sum(row[1] for row in broken),
        "force > -0.7": sum(row[2] for row in broken),
    }
    assert all(0 < count < 120 for count in found.violations.values())


@pytest.mark.slow
def test_hard_constraints_change_no_reward_and_no_code() -> None:
    plain = cart("Plain")
    judged = cart("Judged", constraints=["abs(position) < 0.8"])
    assert judged.digest == plain.digest
    problem, other = (spaql.make_problem(one, measured=False) for one in (plain, judged))
    found, same = (spaql.evaluate(Law(one), one, episodes=10) for one in (problem, other))
    assert found.returns.tolist() == same.returns.tolist()
    assert found.violations == {}
    assert list(same.violations) == ["abs(position) < 0.8"]


def test_the_digest_sees_the_cost() -> None:
    digests = {cart("Digest", cost=text).digest for text in ("position", "speed", "2 * speed")}
    assert len(digests | {cart("Digest").digest}) == 4


@pytest.mark.slow
def test_partitions_are_counted_as_well() -> None:
    agent = spaql.SPAQL(cart("Balls", cost=COST, constraints=CONSTRAINTS), rollouts=2, seed=0)
    agent.learn(iterations=2)
    found = spaql.evaluate(agent, episodes=7)
    assert found.broken is not None
    assert found.broken.shape == (7, 3)


CART_POLE = {
    "cost": "cart_position**2 + 0.1 * action",
    "constraints": ["abs(pole_angle) < 0.1", ("abs(cart_position) < 0.05", 3.0)],
}


@pytest.mark.slow
def test_compiled_and_gymnasium_environments_agree() -> None:
    compiled = spaql.make_problem("CartPole-v1", **CART_POLE)
    plain = spaql.make_problem("CartPole-v1", compiled=False, **CART_POLE)
    assert compiled.dynamics is not None
    assert compiled.constraints == plain.constraints
    one = gymnasium.make(compiled.dynamics.id)
    other = plain.make()
    one.reset(seed=0)
    other.reset(seed=0)
    one.unwrapped.state = other.unwrapped.state = (0.04, 0.0, 0.02, 0.0)
    for action in np.random.default_rng(0).integers(0, 2, 12).tolist():
        *_, first = taken = one.step(action)
        *_, second = taken_there = other.step(action)
        assert taken[1] == pytest.approx(taken_there[1], rel=1e-6)
        assert first["broken"].tolist() == second["broken"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [True, False])
def test_a_cost_is_saved_with_the_agent(compiled: bool, tmp_path: Path) -> None:
    agent = spaql.PlanTree("CartPole-v1", seed=0, effort=0.02, compiled=compiled, **CART_POLE)
    agent.learn(200)
    agent.save(tmp_path / "agent.spaql")
    again = spaql.load(tmp_path / "agent.spaql")
    assert again.problem.stage_cost == agent.problem.stage_cost
    assert again.problem.runs_on == agent.problem.runs_on
    found, same = (spaql.evaluate(one, episodes=8) for one in (agent, again))
    assert found.returns.tolist() == same.returns.tolist()
    assert found.violations == same.violations
    assert set(found.violations) == {"abs(pole_angle) < 0.1", "abs(cart_position) < 0.05"}
    moved = spaql.load(tmp_path / "agent.spaql", env="CartPole-v1").problem
    assert moved.stage_cost == agent.problem.stage_cost


def test_a_file_with_a_cost_that_is_none_is_refused(tmp_path: Path) -> None:
    from spaql import archive
    from spaql.agents.problem_file import problem_from, problem_to

    data, arrays = problem_to(spaql.make_problem("CartPole-v1", **CART_POLE))
    assert problem_from(data, arrays).stage_cost is not None
    wrong = [7, {"cost": 7, "constraints": []}, {"cost": "x.y", "constraints": []}, {"cost": None}]
    wrong += [{"cost": None, "constraints": one} for one in (7, ["open('f')"], [["action", "x"]])]
    for one in wrong:
        with pytest.raises(ArchiveError):
            problem_from(data | {"stage_cost": one}, arrays)
    del data["stage_cost"]
    for other in (7, [["x"]]):
        with pytest.raises(ArchiveError):
            problem_from(data | {"constraints": other}, arrays)
    for one in ("abc", 7, {"step": 7}):
        with pytest.raises(archive.ArchiveError):
            problem_from(data | {"plant": one}, arrays)


def test_a_problem_with_a_cost_can_be_sent() -> None:
    problem = spaql.make_problem("CartPole-v1", **CART_POLE)
    there = receive(send(problem, ""), "")
    assert there.stage_cost == problem.stage_cost
    assert problem.dynamics is not None
    assert there.dynamics is not None
    assert (there.dynamics.id, there.dynamics.digest) == (problem.dynamics.id, problem.dynamics.digest)


def test_names_that_were_given_are_used() -> None:
    names = {"observation_names": ["x [m]", "v", "angle [rad]", "w"]}
    problem = spaql.make_problem("CartPole-v1", cost="angle**2", **names)
    assert problem.dynamics is not None
    assert problem.dynamics.cost == "pole_angle ** 2"
    assert problem.runs_on.endswith("with the cost angle**2")
    with pytest.raises(spaql.SettingError, match="did you mean angle"):
        spaql.make_problem("CartPole-v1", cost="pole_angle**2", **names)


def test_what_a_plant_declares_is_not_replaced() -> None:
    with pytest.raises(spaql.SettingError, match="declares a cost or constraints itself"):
        spaql.make_problem(cart("Declared", cost=COST), cost="position")


def test_a_cost_that_is_not_finite_is_told() -> None:
    problem = spaql.make_problem(cart("Endless", cost="1 / (position - position)"), measured=False)
    with pytest.raises(spaql.BadEnvironmentError, match="reward"):
        spaql.evaluate(Law(problem), problem, episodes=1)


def test_a_price_is_charged_once_where_a_problem_is_changed() -> None:
    problem = spaql.make_problem("CartPole-v1", constraints=[("abs(cart_position) < 1e-9", 3.0)])
    assert problem.dynamics is not None
    changed = [
        dataclasses.replace(problem, dynamics=None),
        dataclasses.replace(problem, env=problem.dynamics.id, dynamics=None, plant={}),
        with_parameters(problem, {"masspole": 0.2}),
    ]
    for one in changed:
        env = one.make()
        env.reset(seed=0)
        assert env.step(1)[1] == 1.0 - 3.0
        assert env.step(1)[4]["broken"].tolist() == [True]
