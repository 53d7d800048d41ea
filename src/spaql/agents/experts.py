"""Policies of other libraries, to be imitated: Stable-Baselines3, ONNX, Python functions."""

from __future__ import annotations

import inspect
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.controllers import Policy
from spaql.controllers.policy import PathLike, Rng, opened, policy_of
from spaql.errors import MissingExtraError, SettingError, imported, nearest
from spaql.problems import Problem

ActionFunction = Callable[[NDArray[Any]], Any]
"""Returns the actions for a batch of observations."""


class Expert(Policy):
    """A policy of another library: deterministic, without memory, and checked at every step.

    Components of a Box action beyond their bounds are clipped, and counted.
    """

    def __init__(self, answer: ActionFunction, problem: Problem, name: str) -> None:
        self.observation_space = problem.states.space
        self.action_space = problem.actions.space
        self.name = name
        self.clipped = 0
        """Number of actions so far that were beyond their bounds."""
        self._answer = answer

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        rows = len(observations)
        space = self.action_space
        actions = np.asarray(self._answer(observations))
        wanted = (rows, *(space.shape or ()))
        if actions.size != np.prod(wanted):
            raise SettingError(
                f"{self.name} returned actions of shape {actions.shape} for {rows} observations, but "
                f"{space} needs {wanted}."
            )
        actions = actions.reshape(wanted)
        if isinstance(space, Discrete):
            first = int(space.start)
            last = int(space.start + space.n) - 1
            listed = (actions >= first) & (actions <= last) & (actions == np.floor(actions))
            if not listed.all():
                raise SettingError(
                    f"{self.name} returned the action {actions[~listed][0]}: it must be a whole number from "
                    f"{first} to {last}."
                )
            return actions.astype(np.int64)
        assert isinstance(space, Box)
        if np.isnan(actions).any():
            row = int(np.flatnonzero(np.isnan(actions).reshape(rows, -1).any(axis=1))[0])
            raise SettingError(f"{self.name} returned NaN for the observation {observations[row]}.")
        inside = np.clip(actions, space.low, space.high)
        self.clipped += int((inside != actions).reshape(rows, -1).any(axis=1).sum())
        return inside.astype(space.dtype)


def expert_of(source: Any, problem: Problem, *, vec_normalize: PathLike | None = None) -> Expert:
    """Return the policy to imitate.

    Parameters
    ----------
    source
        A Stable-Baselines3 (`.zip`) or ONNX (`.onnx`) file; `module:name`, which is imported; a run folder
        or file of spaql; a policy or agent; an object with Stable-Baselines3's `predict`; or a function from
        one observation to one action.
    problem
        The problem that it solves.
    vec_normalize
        The file of Stable-Baselines3's `VecNormalize`, for a network of normalised observations.

    Notes
    -----
    A Stable-Baselines3 file contains pickles, which run code when they are read: use only files you trust.
    """
    name = str(source) if isinstance(source, str | os.PathLike) else type(source).__name__
    suffix = Path(name).suffix.lower() if isinstance(source, str | os.PathLike) else ""
    if vec_normalize is not None and suffix != ".zip":
        raise SettingError("vec_normalize is for a .zip file of Stable-Baselines3: leave it out.")
    if isinstance(source, str) and ":" in source and not Path(source).exists():
        module, _, attribute = source.rpartition(":")
        home = imported(module, attribute)
        if not hasattr(home, attribute):
            known = [name_there for name_there in vars(home) if not name_there.startswith("_")]
            raise SettingError(f"{module} has no {attribute!r}: {nearest(attribute, known)}")
        return Expert(_answer(getattr(home, attribute)), problem, source)
    if suffix in (".zip", ".onnx"):
        if not Path(name).is_file():
            raise SettingError(f"There is no file {name}.")
        if suffix == ".onnx":
            return Expert(_onnx(Path(name), problem), problem, Path(name).name)
        return Expert(_stable_baselines(Path(name), problem, vec_normalize), problem, Path(name).name)
    return Expert(_answer(source), problem, getattr(source, "__name__", name))


def _answer(source: Any) -> ActionFunction:
    """Return the function from a batch of observations to actions of an object in memory, or a run."""
    own = isinstance(source, Policy | str | os.PathLike) or hasattr(source, "conclude")
    if own or isinstance(getattr(source, "policy", None), Policy):
        policy = policy_of(opened(source))
        if policy.time_variant or policy.remembers:
            raise SettingError(
                f"A {type(policy).__name__} that depends on time or memory cannot be imitated: the action "
                "must be a function of the observation."
            )
        return lambda rows: policy.act(rows, np.zeros(len(rows), np.int64), None)
    if hasattr(source, "predict"):
        return lambda rows: source.predict(rows, deterministic=True)[0]
    if callable(source) and not isinstance(source, type):
        return lambda rows: np.array([np.asarray(source(row)) for row in rows])
    raise SettingError(
        f"{source!r} is not a policy: give a .zip file of Stable-Baselines3, an .onnx file, MODULE:NAME, an "
        "object with predict(), or a function from an observation to an action."
    )


def _stable_baselines(path: Path, problem: Problem, vec_normalize: PathLike | None) -> ActionFunction:
    """Return the deterministic actions of a saved model of any algorithm: only its policy is built."""
    try:
        from stable_baselines3.common.save_util import load_from_zip_file
    except ImportError as error:
        raise MissingExtraError(
            "A Stable-Baselines3 model needs the library: pip install 'spaql[baselines]'."
        ) from error
    unused: dict[str, Any] = dict.fromkeys(("learning_rate", "lr_schedule", "clip_range", "clip_range_vf"))
    unused |= dict.fromkeys(("ep_info_buffer", "ep_success_buffer", "action_noise", "replay_buffer_class"))
    try:
        data, parameters, _ = load_from_zip_file(path, device="cpu", custom_objects=unused)
    except Exception as error:
        raise SettingError(f"{path} cannot be read as a Stable-Baselines3 model: {error}.") from error
    if not data or "policy_class" not in data or "policy" not in parameters:
        raise SettingError(f"{path} is not a Stable-Baselines3 model: save one with model.save.")
    make = data["policy_class"]
    spaces = (data["observation_space"], data["action_space"])
    if any(part.__name__.startswith("Recurrent") for part in make.__mro__):
        raise SettingError(f"{path} contains a {make.__name__}, which has memory and cannot be imitated.")
    _check_spaces(path.name, spaces, problem)
    offered = {"lr_schedule": _no_schedule, "use_sde": data.get("use_sde", False)}
    taken = inspect.signature(make.__init__).parameters
    options = {key: value for key, value in offered.items() if key in taken}
    policy = make(*spaces, **options | dict(data["policy_kwargs"]))
    policy.load_state_dict(parameters["policy"])
    policy.set_training_mode(False)
    normalised = (lambda rows: rows) if vec_normalize is None else _normalisation(vec_normalize)
    return lambda rows: policy.predict(normalised(rows), deterministic=True)[0]


def _no_schedule(_: float) -> float:
    """Return a learning rate for an optimiser that is never stepped."""
    return 0.0


def _normalisation(path: PathLike) -> Callable[[NDArray[Any]], NDArray[Any]]:
    try:
        with open(path, "rb") as file:
            statistics = pickle.load(file)
        normalise: Callable[[NDArray[Any]], NDArray[Any]] = statistics.normalize_obs
    except (AttributeError, EOFError, ImportError, pickle.UnpicklingError) as error:
        raise SettingError(
            f"{os.fspath(path)} contains no VecNormalize of Stable-Baselines3: {error}."
        ) from error
    return normalise


def _check_spaces(name: str, spaces: tuple[Any, Any], problem: Problem) -> None:
    own = (problem.states.space, problem.actions.space)
    for what, space, own_space in zip(("observations", "actions"), spaces, own, strict=True):
        same = type(space) is type(own_space) and space.shape == own_space.shape
        if not same or getattr(space, "n", None) != getattr(own_space, "n", None):
            raise SettingError(f"{name} has the {what} {space}, but {problem.name} has {own_space}.")


def _onnx(path: Path, problem: Problem) -> ActionFunction:
    """Return the actions of an ONNX model: its output `action`, or the first one.

    For discrete actions the output is the action's index, or a score of each action, of which the highest
    counts.
    """
    from spaql.export.languages.onnx import runtime_module  # loads all targets, which training does not need

    runtime = runtime_module()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise SettingError(f"{path} cannot be read as an ONNX model: {error}.") from error
    inputs = session.get_inputs()
    if len(inputs) != 1:
        names = ", ".join(name.name for name in inputs)
        raise SettingError(f"{path.name} has the inputs {names}: a policy has one input, the observation.")
    wanted = inputs[0].name
    kind = np.float64 if "double" in inputs[0].type else np.float32
    outputs = [name.name for name in session.get_outputs()]
    read = next((name for name in ("action", "actions") if name in outputs), outputs[0])
    space = problem.actions.space
    fixed = inputs[0].shape and isinstance(inputs[0].shape[0], int)

    def run(rows: NDArray[Any]) -> NDArray[Any]:
        output = np.asarray(session.run([read], {wanted: rows.astype(kind)})[0])
        scores = output.ndim == 2 and output.shape[1] > 1
        if isinstance(space, Discrete) and scores and output.shape[1] == space.n:
            return np.asarray(int(space.start) + output.argmax(axis=1))
        return output

    if not fixed:
        return run
    return lambda rows: np.concatenate([run(row[np.newaxis]) for row in rows])
