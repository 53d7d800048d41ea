"""Declared disturbances: as they are declared, and the same compiled, in environments and in Python."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import spaql
from spaql.controllers.arrays import frame_of
from spaql.problems import DisturbedEnv, Load, Perturbation, perturbed
from spaql.problems.tapes import trace_step
from spaql.simulate.candidates import Candidates, CompiledCandidates
from spaql.simulate.loop import PlantRows
from spaql.simulate.play import play


def start(rng):
    return (rng.uniform(-1.0, 1.0), 0.0)


def step(state, action):
    x, v = state
    v += 0.1 * (action[0] - x)
    return (x + 0.1 * v, v), action[0], abs(x) > 30.0


def random_step(state, action, parameters, rng):
    x, v = state
    v += 0.1 * (action[0] + action[1] - parameters[0] * x) + rng.normal(0.0, 0.01)
    return (x + 0.1 * v, v), -x * x, abs(x) > 30.0


def spring(**changes) -> spaql.Dynamics:
    whole = {
        "id": "test/DisturbedSpring-v0",
        "start": start,
        "step": step,
        "observations": {"position [m]": (-30, 30), "speed [m/s]": (-30, 30)},
        "actions": {"force [N]": (-1, 1)},
        "horizon": 50,
    }
    return spaql.Dynamics(**(whole | changes))


def everything() -> spaql.Dynamics:
    return spring(
        id="test/AllDisturbances-v0",
        step=random_step,
        actions={"force [N]": (-1, 1), "push [N]": (0.5, 2)},
        parameters={"stiffness [N/m]": (0.8, 1.2)},
        noise={"position [m]": 0.1},
        action_noise={"push [N]": 0.05},
        late_observations=True,
        delay=(1, 3),
        rate_limit={"push [N]": 0.1},
        gain=0.2,
        disturbance={"push [N]": Load(size=0.3, begins=(3, 9))},
    )


def follow(plant: spaql.Dynamics, actions: list, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The states and the rewards of the plain Python functions."""
    begin, advance, _ = plant.functions
    state = begin(np.random.default_rng(seed))
    states = []
    rewards = []
    for action in actions:
        given = action if isinstance(action, int) else np.array(action, np.float64)
        state, reward, _ = advance(state, given)
        assert isinstance(action, int) or np.array_equal(given, action)  # left as it was given
        states.append(state)
        rewards.append(reward)
    return np.array(states), np.array(rewards)


def test_a_plant_without_disturbances_is_left_alone() -> None:
    plant = spring()
    assert plant.functions == (start, step, plant.observe)
    assert plant.state_dims == plant.plant_dims == 2


def test_compiled_loops_environments_and_python_agree_to_the_last_bit() -> None:
    plant = everything()
    _, advance, observe = plant.functions
    many = PlantRows(plant.plant, plant.draw(3, np.random.default_rng(3)))
    one = gymnasium.make(plant.id).unwrapped
    seen = many.first
    one.reset(seed=0)
    written = [tuple(row) for row in many.states.tolist()]
    actions = np.random.default_rng(1).uniform([-1.2, 0.4], [1.2, 2.2], (45, 3, 2)).astype(np.float32)
    totals = np.zeros(3)
    for row in actions:
        assert np.array_equal(seen, np.float32([observe(state) for state in written]))
        before = written
        seen, rewards, terminated, _ = many.step(row, np.ones(3, bool))
        made = [advance(state, np.float64(action)) for state, action in zip(before, row, strict=True)]
        written = [state for state, _, _ in made]
        assert np.array_equal(many.states, written)
        assert (rewards.tolist(), terminated.tolist()) == ([r for _, r, _ in made], [e for _, _, e in made])
        one.state = before[0]
        again, reward, ended, _, _ = one.step(row[0])
        assert np.array_equal(again, seen[0])
        assert (reward, ended, one.state) == (rewards[0], terminated[0], written[0])
        totals += rewards


def test_candidates_of_a_search_meet_the_same_disturbances() -> None:
    plant = everything()
    problem = spaql.make_problem(plant)
    player = CompiledCandidates(problem)
    starts = player.starts(np.random.default_rng(5), 4)
    numbers = np.zeros((2, 1, 2, 3))
    numbers[:, 0, :, 0] = 0.5, 1.0  # the same constant action, twice
    found = player.play(
        Candidates.of(np.full(1, -1), np.ones((1, 2), bool), numbers, frame_of(2, problem.actions.space)),
        starts,
    )
    assert np.array_equal(found.returns[0], found.returns[1])
    _, advance, _ = plant.functions
    for i, row in enumerate(starts.tolist()):
        state = tuple(row)
        total = 0.0
        for _ in range(plant.horizon):
            state, reward, _ = advance(state, np.array([0.5, 1.0]))
            total += reward
        assert found.returns[0, i] == total
    assert len(np.unique(found.returns[0])) == 4


def test_chosen_starts_are_states_of_the_plant_or_simulated_ones() -> None:
    plant = everything()
    problem = spaql.make_problem(plant)
    policy = spaql.RandomPolicy(problem.states, problem.actions)
    short = np.array([[0.5, 0.0], [0.5, 0.0]])
    whole = None
    episodes = list(play(policy, problem, short))
    assert [episode.start.tolist() for episode in episodes] == short.tolist()
    assert episodes[0].observations[0, 0] != episodes[1].observations[0, 0]  # noise
    whole = plant.simulated(short, np.random.default_rng(0))
    assert whole.shape == (2, plant.state_dims)
    again = list(play(policy, problem, whole))
    assert np.array_equal(again[0].observations[0], episodes[0].observations[0])
    with pytest.raises(spaql.SettingError, match="has 3 numbers, and must have 2"):
        list(play(policy, problem, np.zeros((1, 3))))


def test_dead_time() -> None:
    actions = [[0.5], [-0.25], [1.0], [0.0], [0.0]]
    assert follow(spring(delay=2), actions)[1].tolist() == [0, 0, 0.5, -0.25, 1]
    warm = spring(delay=1, actions={"heat": (0.2, 1)})
    assert follow(warm, [[0.5], [0.9]])[1].tolist() == [0.2, 0.5]  # it rests next to 0
    drawn = {follow(spring(delay=(1, 3)), [[0.5]] * 4, seed)[1].tolist().index(0.5) for seed in range(20)}
    assert drawn == {1, 2, 3}


def test_dead_time_of_listed_actions() -> None:
    plant = spring(
        actions=("back", "stay", "forth"), delay=2, step=lambda state, action: (state, float(action), False)
    )
    assert follow(plant, [2, 1, 0, 0])[1].tolist() == [0, 0, 2, 1]


def test_the_range_and_the_rate_limit_of_an_actuator() -> None:
    plant = spring(rate_limit={"force [N]": 0.5})
    assert follow(plant, [[5.0], [5.0], [5.0], [-5.0], [0.9]])[1].tolist() == [0.5, 1, 1, 0.5, 0.9]


def test_gains_of_actuators_are_drawn_for_an_episode_and_keep_the_range() -> None:
    gains = np.array([follow(spring(gain=0.2), [[0.5], [0.5], [1.0]], seed)[1] for seed in range(200)])
    assert np.array_equal(gains[:, 0], gains[:, 1])
    assert 0.8 <= 2 * gains[:, 0].min() < 0.82
    assert 1.18 < 2 * gains[:, 0].max() <= 1.2
    assert gains[:, 2].max() == 1.0


def test_a_load_begins_and_stays() -> None:
    plant = spring(delay=1, disturbance={"force [N]": Load(size=0.3, begins=(2, 4))})
    for seed in range(10):
        state = plant.functions[0](np.random.default_rng(seed))
        begins, size = state[3:5]
        assert begins in (2, 3)
        assert abs(size) < 0.3
        rewards = follow(plant, [[0.5]] * 6, seed)[1]
        assert rewards.tolist() == [(t > 0) * 0.5 + (size if t >= begins else 0.0) for t in range(6)]


def test_a_load_is_refused_by_proofs() -> None:
    plant = spring(disturbance={"force [N]": Load(size=0.1, begins=(2, 8))})
    with pytest.raises(spaql.SettingError, match=r"declares disturbances, .* and a proof needs"):
        trace_step(plant)


def test_noise_has_its_deviation_and_is_not_in_the_state() -> None:
    plant = spring(noise={"position [m]": 0.2})
    begin, advance, observe = plant.functions
    noise = []
    for seed in range(60):
        state = begin(np.random.default_rng(seed))
        for _ in range(50):
            seen = observe(state)
            assert seen == observe(state)
            assert seen[1] == state[1]
            noise.append(seen[0] - state[0])
            state, _, _ = advance(state, np.zeros(1))
    noise = np.array(noise).reshape(60, 50)
    assert abs(noise.mean()) < 0.015
    assert noise.std() == pytest.approx(0.2, rel=0.05)
    assert abs(np.corrcoef(noise[:, :-1].ravel(), noise[:, 1:].ravel())[0, 1]) < 0.06
    assert abs(np.corrcoef(noise[:-1].ravel(), noise[1:].ravel())[0, 1]) < 0.06


def test_noise_is_cut_at_what_is_accepted_out_of_bounds() -> None:
    plant = spring(noise={"position [m]": 1000.0})
    state = plant.functions[0](np.random.default_rng(0))
    assert abs(plant.functions[2](state)[0] - state[0]) == pytest.approx(6.0)  # a tenth of the range


def test_late_observations() -> None:
    plant = spring(late_observations=True)
    begin, advance, observe = plant.functions
    state = begin(np.random.default_rng(0))
    seen = [observe(state)]
    states = [state[:2]]
    for _ in range(3):
        state, _, _ = advance(state, np.array([0.5]))
        seen.append(observe(state))
        states.append(state[:2])
    assert seen == [states[0], *states[:-1]]


def test_noise_on_actions_keeps_their_range() -> None:
    noise = follow(spring(action_noise={"force [N]": 0.1}), [[0.5]] * 2000)[1] - 0.5
    assert noise.std() == pytest.approx(0.1, rel=0.05)
    assert abs(noise.mean()) < 0.01
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 0.06
    assert follow(spring(action_noise={"force [N]": 0.1}), [[1.0]] * 100)[1].max() == 1.0


def discrete(**changes) -> spaql.Dynamics:
    return spring(
        actions=("back", "stay", "forth"), step=lambda state, action: (state, float(action), False), **changes
    )


def test_random_actions_replace_discrete_ones() -> None:
    sent = follow(discrete(action_noise={"stay": 0.3}), [1] * 3000)[1]
    assert [(sent == action).mean() for action in (0, 1, 2)] == pytest.approx([0.1, 0.8, 0.1], abs=0.03)
    assert set(follow(discrete(action_noise={"stay": 0.3}), [2] * 500)[1]) == {2.0}
    late = follow(discrete(action_noise={"stay": 0.3}, delay=2), [1] * 500)[1]
    assert late[2:].tolist() == sent[:498].tolist()


def test_a_plant_in_single_precision_may_be_disturbed() -> None:
    plant = perturbed(
        spaql.problems.find_dynamics("MountainCarContinuous-v0"), Perturbation(noise={"speed": 0.001})
    )
    assert plant.draw(3, np.random.default_rng(0)).shape == (3, plant.state_dims)


def test_a_step_may_draw() -> None:
    plant = spring(
        step=lambda state, action, rng: ((rng.uniform(2.0, 3.0), rng.random()), rng.normal(), False)
    )
    states, rewards = follow(plant, [[0.0]] * 500)
    assert 2.0 < states[:, 0].min() < 2.05
    assert 2.95 < states[:, 0].max() < 3.0
    assert states[:, 1].std() == pytest.approx(12**-0.5, rel=0.1)
    assert rewards.std() == pytest.approx(1.0, rel=0.1)
    assert np.array_equal(follow(plant, [[0.7]] * 500)[1], rewards)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"noise": {"position": 0.1}},
            r"noise names 'position', which is no observation: did you mean position \[m\]",
        ),
        ({"noise": {"position [m]": -1.0}}, "noise of position .* at least 0"),
        ({"action_noise": {"push": 0.1}}, "action_noise names 'push', which is no action"),
        (
            {"actions": ("a", "b"), "action_noise": {"a": 1.1}, "step": lambda s, a: (s, 0.0, False)},
            "noise of a is 1.1, and must be at most 1",
        ),
        ({"delay": -1}, "delay is -1"),
        ({"delay": (3, 1)}, r"delay is \(3, 1\)"),
        ({"rate_limit": {"force [N]": 0.0}}, "rate limit of force .* above 0"),
        ({"gain": 2.0}, "gain is 2.0, and must be at most 1"),
        ({"disturbance": {"push": Load(size=1.0, begins=(0, 1))}}, "disturbance names 'push'"),
        (
            {"actions": ("a", "b"), "gain": 0.1, "step": lambda s, a: (s, 0.0, False)},
            "for actions with a range",
        ),
        ({"parameters": {"k": 1.0}}, "k and step does not take them"),
        (
            {"step": lambda state, action, parameters: (state, 0.0, False)},
            "no parameters, but step takes them",
        ),
        ({"step": lambda state, action, time: (state, 0.0, False)}, "step takes time after the state"),
        ({"setpoints": {"position [m]": "goal"}}, "setpoints names 'goal'"),
        ({"angles": ("phi",)}, r"neither phi nor cos\(phi\)"),
        ({"sample_time": 0.0}, "sample_time is 0.0"),
    ],
)
def test_what_is_wrong_with_a_declaration_is_said(changes: dict, message: str) -> None:
    with pytest.raises(spaql.SettingError, match=message):
        spring(**changes)


def test_a_load_needs_a_range_of_steps() -> None:
    with pytest.raises(spaql.SettingError, match="begins"):
        Load(size=1.0, begins=(5, 5))


def test_a_perturbed_plant() -> None:
    plant = spring(
        delay=2,
        parameters={"k": 1.0},
        step=lambda state, action, parameters: (state, parameters[0] * action[0], False),
        noise={"speed [m/s]": 0.3},
        setpoints={"position [m]": "speed [m/s]"},
    )
    other = perturbed(plant, Perturbation(parameters={"k": (0.5, 2.0)}, noise={"position [m]": 0.1}))
    assert other.id != plant.id
    assert plant.is_registered
    assert other.is_registered
    assert (other.gain, other.delay, other.parameters) == (0.2, (1, 3), {"k": (0.5, 2.0)})
    assert other.noise == {"position [m]": 0.1, "speed [m/s]": 0.3}
    assert other.setpoints == plant.setpoints
    assert perturbed(plant, Perturbation(gain=0.1, delay=0)).delay == 2
    assert perturbed(plant, Perturbation(gain=0.1)).id != other.id
    with pytest.raises(spaql.SettingError, match="no parameter of the plant"):
        perturbed(plant, Perturbation(parameters={"mass": (1.0, 2.0)}))


class Echo(gymnasium.Env):
    """Observes and rewards the action that it was given."""

    observation_space = gymnasium.spaces.Box(-10, 10, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.float32(action), float(action[0]), False, False, {}


def echoed(actions: list, seed: int = 0, **declared) -> list:
    env = DisturbedEnv(Echo(), **declared)
    env.reset(seed=seed)
    return [env.step(np.float32(action))[1] for action in actions]


@pytest.mark.filterwarnings("ignore:.*WARN")  # Gymnasium checks raw environments rather than wrapped ones
def test_the_same_disturbances_for_any_environment() -> None:
    assert echoed([[0.5], [-0.25], [1.0], [0.0]], delay=2) == [0, 0, 0.5, -0.25]
    gains = [echoed([[0.5]], seed, gain=0.2)[0] for seed in range(50)]
    assert 0.4 <= min(gains) < max(gains) <= 0.6
    env = DisturbedEnv(Echo(), noise={0: 0.1})
    first = env.reset(seed=3)[0]
    assert first != 0
    moved = np.array(echoed([[0.5]] * 1000, action_noise={0: 0.1}))
    assert (moved.mean(), moved.std()) == pytest.approx((0.5, 0.1), rel=0.1)
    assert max(echoed([[1.0]] * 50, action_noise={0: 0.1})) == 1.0
    assert np.array_equal(env.reset(seed=3)[0], first)
    check_env(DisturbedEnv(Echo(), noise={0: 0.01}, delay=1), skip_render_check=True)


class Listed(gymnasium.Env):
    """Observes the discrete action that it was given, first the middle one."""

    action_space = gymnasium.spaces.Discrete(3, start=2)

    def __init__(self, space: gymnasium.Space) -> None:
        self.observation_space = space

    def _seen(self, value: int):
        return np.full(self.observation_space.shape, value, self.observation_space.dtype)[()]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._seen(3), {}

    def step(self, action):
        return self._seen(action), 0.0, False, False, {}


@pytest.mark.parametrize(
    "space",
    [gymnasium.spaces.Discrete(3, start=2), gymnasium.spaces.Box(2, 4, (1,), np.uint8)],
    ids=["Discrete", "Box"],
)
def test_whole_numbers_stay_whole_numbers_of_their_range(space: gymnasium.Space) -> None:
    """Of observations; and of discrete actions those that were declared are replaced."""
    for noise, values in ((0.1, {4}), (1000.0, {4})):  # cut at a tenth of the range: never another number
        env = DisturbedEnv(Listed(space), noise={0: noise})
        env.reset(seed=0)
        assert {int(np.ravel(env.step(4)[0])[0]) for _ in range(20)} == values
        assert env.step(4)[0] in space
    late = DisturbedEnv(Listed(space), late_observations=True)
    seen = [late.reset(seed=0)[0], *(late.step(action)[0] for action in (2, 4, 4))]
    assert [int(np.ravel(one)[0]) for one in seen] == [3, 3, 2, 4]
    env = DisturbedEnv(Listed(space), action_noise={2: 0.6})
    env.reset(seed=0)
    sent = [int(np.ravel(env.step(4)[0])[0]) for _ in range(2000)]
    assert [sent.count(action) / 2000 for action in (2, 3, 4)] == pytest.approx([0.2, 0.2, 0.6], abs=0.04)
    assert {int(np.ravel(env.step(2)[0])[0]) for _ in range(50)} == {2}


def test_a_disturbed_environment_is_a_problem() -> None:
    problem = spaql.make_problem(DisturbedEnv(gymnasium.make("Pendulum-v1"), noise={2: 0.5}, delay=1))
    policy = spaql.RandomPolicy(problem.states, problem.actions)
    plain = spaql.make_problem("Pendulum-v1", compiled=False)
    noisy, quiet = (spaql.evaluate(policy, where, episodes=2, seed=1) for where in (problem, plain))
    assert noisy.steps == quiet.steps == 400
    assert not np.array_equal(noisy.returns, quiet.returns)


def test_the_meaning_of_observations_is_saved(tmp_path) -> None:
    problem = spaql.make_problem(
        "MountainCar-v0", observation_names=["x", "v"], setpoints={"x": "v"}, angles=["x"], sample_time=0.5
    )
    agent = spaql.SPAQL(problem, seed=0)
    agent.save(tmp_path / "agent.spaql")
    again = spaql.load(tmp_path / "agent.spaql").problem
    assert (again.setpoints, again.angles, again.sample_time) == ({"x": "v"}, ("x",), 0.5)
    named = spaql.make_problem(
        spring(setpoints={"position [m]": "speed [m/s]"}, sample_time=0.1), observation_names=["a", "b"]
    )
    assert (named.setpoints, named.sample_time) == ({"a": "b"}, 0.1)
    with pytest.raises(spaql.SettingError, match="setpoints names 'y'"):
        spaql.make_problem("MountainCar-v0", setpoints={"y": "x0"})
