"""The guard of proofs: what the compiled plant contradicts is not called proven."""

import math

import pytest

import spaql
from spaql.errors import ContradictedProofError
from spaql.kernels.jit import ENABLED
from spaql.verify import Statement
from spaql.verify.guard import guarded
from spaql.verify.run import closed_loop, searched
from verify_programs import controller_for, one_cut

pytestmark = pytest.mark.skipif(not ENABLED, reason="without compilation there is no compiled plant")
X = {"x": (-1.0, 1.0)}
NEAR = {"x": (-0.5, 0.5)}
AGREE = "100,000 episodes played from proven states agree."


def plant(step, *, listed=False):
    return spaql.Dynamics(
        id="guarded/Plant-v0",
        start=lambda rng: (0.5,),
        step=step,
        observations=X,
        actions=("left", "right") if listed else {"u": (-1, 1)},
        horizon=20,
    )


def constant(plant, value=0.0):
    return controller_for(plant, [[value]] if isinstance(plant.actions, dict) else [int(value)])


def shrinks(state, action):
    return (0.5 * state[0],), 0.0, abs(state[0]) < 0.25


def goes_on(state, action):
    return (0.5 * state[0],), 0.0, False


def jumps_at_zero(state, action):
    return (0.5 * state[0] if state[0] != 0.0 else 3.0,), 0.0, False


def jumps_next_to_a_quarter(state, action):
    return (0.5 * state[0] if state[0] != 0.25000000000000006 else 3.0,), 0.0, False


def is_nan_below_zero(state, action):
    return (0.5 * min(max(math.sqrt(state[0]), -1.0), 1.0),), 0.0, False


def is_slower(state, action):
    return (0.9 * state[0],), 0.0, abs(state[0]) < 0.25


def ends(state, action):
    return (0.5 * state[0],), 0.0, state[0] > 0.9


def drifts(state, action):
    return (min(state[0] + 0.01, 0.6),), 0.0, False


def looks_up(state, action):
    return ((0.5, -0.5, 0.25)[int(4.0 * state[0])],), 0.0, False


STAYS = Statement(starts=X, allowed=X)
LASTS = Statement(starts=X, allowed=X, within=3)
REACHES = Statement(starts=X, target=NEAR, stays=True, within=20)
PASSES = Statement(starts=X, target=NEAR, stays=False, within=20)
GOAL = Statement(starts=X, termination="goal", within=20)


@pytest.mark.parametrize(
    ("proven", "played", "asked", "said"),
    [
        (goes_on, jumps_at_zero, STAYS, "x leaves what is allowed: it is 3.0"),
        (goes_on, jumps_next_to_a_quarter, STAYS, "x leaves what is allowed: it is 3.0"),
        (goes_on, is_nan_below_zero, LASTS, "x is nan"),
        (goes_on, ends, STAYS, "it terminates"),
        (goes_on, drifts, REACHES, "it is not in the target after"),
        (goes_on, jumps_at_zero, REACHES, "it is not in the target after"),
        (goes_on, is_slower, PASSES, "it is not in the target after"),
        (shrinks, is_slower, GOAL, "it has not terminated after"),
        (goes_on, looks_up, LASTS, "the plant's step raises IndexError"),
    ],
)
def test_a_plant_that_contradicts_a_proof_is_found(proven, played, asked, said):
    believed = plant(proven)
    other = plant(played if played is not looks_up else goes_on)
    verdict, _ = searched(constant(believed), believed, asked, seconds=5, levels=4)
    assert verdict.proven > 0.0
    loop = closed_loop(constant(other), other)
    if played is looks_up:  # which is not traced without bounds
        object.__setattr__(loop, "dynamics", plant(looks_up))
    with pytest.raises(ContradictedProofError, match="This is a bug in spaql") as raised:
        guarded(verdict, loop)
    assert said in str(raised.value)


@pytest.mark.parametrize("asked", [STAYS, LASTS, REACHES, PASSES])
def test_episodes_that_agree_are_counted(asked):
    believed = plant(goes_on)
    assert AGREE in spaql.verify(constant(believed), believed, asked, seconds=5, levels=4).text


def test_where_nothing_is_proven_nothing_is_played():
    believed = plant(drifts)
    asked = Statement(starts=X, allowed=NEAR, within=200)
    verdict = spaql.verify(constant(believed), believed, asked, seconds=5, levels=4)
    assert verdict.proven == 0.0
    assert AGREE not in verdict.text


def pushed(state, action):
    return (0.5 * state[0] + 0.4 * action[0],), 0.0, False


def test_disturbances_are_drawn_up_to_their_bounds():
    believed = plant(goes_on)
    verdict, loop = searched(constant(believed), believed, LASTS, push=0.49, seconds=5, levels=4)
    assert verdict.proven == 1.0
    assert guarded(verdict, loop).remarks == (AGREE,)
    with pytest.raises(ContradictedProofError, match="x leaves what is allowed"):
        guarded(verdict, closed_loop(constant(believed), believed, push=0.51))


def test_errors_of_observations_are_drawn_up_to_their_bounds():
    believed = plant(pushed)
    tree = controller_for(believed, [[1.0], [-1.0]], **one_cut(0.0))
    asked = Statement(starts={"x": (-0.45, 0.45)}, allowed={"x": (-0.46, 0.46)}, within=1)
    verdict, loop = searched(tree, believed, asked, noise=0.1, seconds=5, levels=6)
    assert verdict.proven == 1.0
    assert guarded(verdict, loop, 0.1).remarks == (AGREE,)
    with pytest.raises(ContradictedProofError, match="x leaves what is allowed"):
        guarded(verdict, loop, 0.2)


@pytest.mark.parametrize("listed", [False, True])
def test_an_action_that_waits_is_played(listed):
    def moved(state, action):
        return (0.5 * state[0] + 0.1 * action[0],), 0.0, False

    def chosen(state, action):
        return (0.5 * state[0] + 0.1 * action,), 0.0, False

    believed = plant(chosen if listed else moved, listed=listed)
    waiting = {"waiting action": (-0.25, 1.75)} if listed else {"waiting u": (-1, 1)}
    asked = Statement(starts={**X, **waiting}, allowed=X, within=3)
    verdict = spaql.verify(constant(believed, 1.0), believed, asked, delayed=True, seconds=5, levels=4)
    assert verdict.proven > 0.9
    assert AGREE in verdict.remarks


def test_a_number_that_does_not_matter_is_anything():
    def two(state, action):
        return (0.5 * state[0], state[1] + 1.0), 0.0, False

    believed = spaql.Dynamics(
        id="guarded/Two-v0",
        start=lambda rng: (0.5, 0.0),
        step=two,
        observations={"x": (-1, 1), "time": (0, math.inf)},
        actions={"u": (-1, 1)},
        horizon=20,
    )
    verdict = spaql.verify(constant(believed), believed, STAYS, seconds=5, levels=4)
    assert verdict.left_out == ("time",)
    assert AGREE in verdict.remarks


def test_all_that_states_come_to_is_played_forwards():
    believed = plant(goes_on)
    asked = Statement(starts=NEAR, allowed=X, forward=True)
    assert AGREE in spaql.verify(constant(believed), believed, asked, seconds=5).remarks
