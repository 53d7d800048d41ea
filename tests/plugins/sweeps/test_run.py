import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaql import Run, SettingError, SpaqlError, grid, read_study
from spaql.plugins.sweeps.study import check, study_from

values = st.one_of(
    st.integers(-(10**6), 10**6),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.lists(st.integers(0, 9), min_size=1, max_size=4),
    st.text("abcxyz-_. %=é", min_size=1, max_size=20),
)


def run(**given: object) -> Run:
    return Run(**({"problem": "cartpole200", "algorithm": "spaql"} | given))


def test_an_id_reads_like_a_path_of_settings() -> None:
    named = run(algorithm="spaql-ts", settings={"scaling": 20.0, "reference": [0, 0.5]}, seed=3)
    assert named.id == "cartpole200/spaql-ts/scaling=20/reference=0,0.5/seed=3"
    assert run(problem="ALE/Pong-v5").id == "ALE-Pong-v5/spaql/seed=0"


def test_the_id_leaves_out_what_is_not_named() -> None:
    assert (
        run(settings={"rollouts": 5, "scaling": 4}, named=("scaling",)).group == "cartpole200/spaql/scaling=4"
    )
    with pytest.raises(SettingError, match="temperature is not one"):
        run(named=("temperature",))


@given(values, values)
def test_different_values_have_different_ids(first: object, second: object) -> None:
    try:
        one = run(settings={"x": first})
        other = run(settings={"x": second})
        ids = {one.id, other.id}
    except SettingError:
        return
    if type(first) is type(second):
        assert (len(ids) == 1) == (first == second)
    assert all(".." not in name.split("/") for name in ids)


@pytest.mark.parametrize("name", ["", ".", "..", "../../etc", ".hidden", "x" * 300])
def test_what_cannot_name_a_folder_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="cannot name a folder"):
        _ = run(problem=name).id


@pytest.mark.parametrize(
    "bad", [{"iterations": 0}, {"iterations": 1.5}, {"seed": -1}, {"fresh_episodes": "3"}]
)
def test_what_is_no_count_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(SettingError, match="must be a whole number"):
        run(**bad)


def test_a_run_has_one_budget() -> None:
    assert (run().iterations, run().total_timesteps) == (100, None)
    by_steps = run(total_timesteps=5000)
    assert (by_steps.iterations, by_steps.total_timesteps) == (None, 5000)
    assert by_steps.digest != run(iterations=5000).digest
    with pytest.raises(SettingError, match="either iterations or total_timesteps"):
        run(iterations=5, total_timesteps=5000)
    for bad in (0, 1.5, "many"):
        with pytest.raises(SettingError, match=r"total_timesteps is .* must be a whole number"):
            run(total_timesteps=bad)


def test_seeds_are_spawned_from_the_root() -> None:
    seeds = {run(seed=seed, root_seed=root).agent_seed for seed in range(200) for root in range(5)}
    assert len(seeds) == 1000
    assert run(seed=7).agent_seed == run(seed=7, settings={"scaling": 4}).agent_seed


def test_a_run_is_a_value() -> None:
    one = run(settings={"scaling": 4})
    assert pickle.loads(pickle.dumps(one)) == one
    assert len({one, run(settings={"scaling": 4}), run(settings={"scaling": 5})}) == 2


def test_numbers_of_numpy_are_plain_numbers() -> None:
    plain = run(settings={"scaling": 0.4})
    numpy = run(settings={"scaling": np.float64(0.4)})
    assert numpy == plain
    assert (numpy.id, numpy.digest) == (plain.id, plain.digest)
    with pytest.raises(SettingError, match="plain data only"):
        run(settings={"scaling": object()})


def test_the_digest_sees_what_the_id_does_not() -> None:
    some = run(settings={"rollouts": 5}, named=())
    other = run(settings={"rollouts": 6}, named=())
    assert some.id == other.id
    assert some.digest != other.digest


def test_a_grid_has_every_combination_once() -> None:
    runs = grid(["cartpole200", "pendulum"], ["spaql", "spaql-ts"], seeds=3, scaling=[1, 4], rollouts=[5, 10])
    assert len(runs) == len({run.id for run in runs}) == 2 * 2 * 3 * 2 * 2
    assert {run.seed for run in grid(["pendulum"], ["aql"], seeds=[4, 9])} == {4, 9}
    with pytest.raises(SettingError, match="lists of names"):
        grid("pendulum", ["aql"])


def test_a_study_is_a_grid(tmp_path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(
        """
        problems = ["cartpole200"]
        algorithms = ["spaql", "spaql-ts"]
        seeds = 2
        root_seed = 7
        iterations = 5
        rollouts = 3
        [grid]
        scaling = [4, 20]
        """
    )
    runs = read_study(file)
    assert len(runs) == 8
    assert runs[0].id == "cartpole200/spaql/scaling=4/seed=0"
    assert runs[-1].id == "cartpole200/spaql-ts/scaling=20/seed=1"
    assert {run.iterations for run in runs} == {5}
    assert all(run.root_seed == 7 and run.settings["rollouts"] == 3 for run in runs)


def test_a_study_may_count_steps() -> None:
    study = {
        "problems": ["Pendulum-v1"],
        "algorithms": ["plantree"],
        "total_timesteps": 5000,
    }
    assert [(run.iterations, run.total_timesteps) for run in study_from(study)] == [(None, 5000)]
    assert {one.total_timesteps for one in grid(["pendulum"], ["spaql"], total_timesteps=700)} == {700}


def test_two_runs_of_one_name_are_refused() -> None:
    with pytest.raises(SettingError, match="Two different runs are called"):
        check([run(settings={"rollouts": rollouts}, named=()) for rollouts in (5, 6)])


BASE = {"problems": ["cartpole200"], "algorithms": ["spaql"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"problems": "cartpole200"}, "problems is a list of names"),
        ({"algorithm": ["spaql"]}, "did you mean algorithms"),
        ({"algorithms": ["spaq"]}, "did you mean spaql"),
        ({"scalling": 4}, "did you mean scaling"),
        ({"grid": {"scaling": 4}}, "list of values for each setting"),
        ({"grid": {"iterations": [1, 2]}}, "put iterations above it"),
        ({"grid": {"scaling": [-4]}}, "at least 0"),
        ({"grid": {"total_timesteps": [1, 2]}}, "put total_timesteps above it"),
        ({"iterations": 5, "total_timesteps": 5}, "either iterations or total_timesteps"),
        ({"total_timestep": 5}, "did you mean total_timesteps"),
        ({"algorithms": ["dqn"], "iterations": 5}, "give it total_timesteps"),
        ({"seeds": 0}, "seeds is 0, and must be how many"),
        ({"iterations": "many"}, "must be a whole number"),
        ({"runs": [{"problem": "pendulum"}]}, "no setting 'runs'"),
        ({"problems": []}, "has no run"),
        ({"algorithms": ["no_such_module:mine"]}, "Cannot import no_such_module"),
        ({"grid": {"seed": [1, 2]}}, "no setting 'seed'"),
        ({"problems": ["CartPol-v1"]}, "cannot make 'CartPol-v1'"),
        ({"problems": ["no_such_module:Plant-v0"]}, "No module named"),
    ],
)
def test_a_wrong_study_is_refused_with_advice(change: dict[str, object], message: str) -> None:
    with pytest.raises(SpaqlError, match=message):
        study_from(BASE | change)


def test_what_is_no_toml_is_refused(tmp_path) -> None:
    (tmp_path / "bad.toml").write_bytes(b"a = [\xff")
    with pytest.raises(SettingError, match="no TOML file"):
        read_study(tmp_path / "bad.toml")
    with pytest.raises(SettingError, match="Cannot read"):
        read_study(tmp_path / "absent.toml")
