"""A plant on the bench as a Gymnasium environment: observations in, actions out, at a fixed sample time."""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from spaql.errors import BadEnvironmentError, SettingError
from spaql.plugins.hardware.board import Counts
from spaql.plugins.hardware.declaration import Range, Signals
from spaql.plugins.hardware.loop import Exchange, SampleLoop
from spaql.plugins.hardware.step_log import StepLog
from spaql.problems.from_log import Objective
from spaql.problems.meaning import Meaning
from spaql.program.parser import Formula
from spaql.values import real_number, whole_number

Observation = NDArray[np.float64]


class Predicts(Protocol):
    """A controller: an agent, a policy, or a model of Stable-Baselines3."""

    def predict(self, observation: Any, state: Any = None, episode_start: Any = None) -> tuple[Any, Any]:
        """Return the action, and the state of a controller with memory."""


class Hardware(gymnasium.Env[Any, Any]):
    """A plant that is connected by a serial port or TCP, in real time.

    The board of the plant samples at a fixed rate, by its own clock. It sends each observation, and plays the
    action that comes back until the next one; `docs/hardware.md` has the protocol, and a board's side in C.
    If an observation does not come in time the safe action is sent, whatever else comes, and `step` returns
    with the next one that does. The safe action is also sent at the end of an episode, at `close`, and at any
    exception, Ctrl-C included. If this process is killed, the watchdog of the board plays it.

    Use it in a `with` statement. It connects at the first `reset`.

    Parameters
    ----------
    port
        A serial port, such as `/dev/ttyACM0` or `COM3` (extra `serial`), or `tcp://HOST:PORT`.
    observations
        Names with ranges, in the order of the board, such as `{"angle [rad]": (-3.2, 3.2)}`. A value beyond
        its range is flagged, as `info["outside"]` and in the log; one farther out than a tenth of the range
        is not acted upon, as if it had not come.
    actions
        Names with ranges, which are the limits of what is sent; or the names of a list of actions, of which
        the number is sent.
    sample_time
        Seconds between two samples. The board must have the same.
    safe_action
        What is played when nothing is known of the plant. The board must have the same.
    horizon
        Samples of an episode.
    cost, reward
        Of a step, as an expression (see `spaql.fit`); without either, rewards are 0.
    end
        An expression of the observations that ends the episode.
    emergency
        An expression of the observations that stops the plant, as `emergency_stop` does. It is asked of every
        observation that comes, before any action is sent upon it.
    log
        CSV file with a row for every sample, for `spaql fit`. One that is there is continued.
    patience
        How long after its time an observation may come, as a share of the sample time.
    most_misses
        Observations in a row that may be missed; at one more the plant is stopped.
    baud
        Of a serial port.

    Examples
    --------
    >>> with Hardware(  # doctest: +SKIP
    ...     "/dev/ttyACM0",
    ...     observations={"position [rad]": (-20, 20)},
    ...     actions={"voltage [V]": (-12, 12)},
    ...     sample_time=0.02,
    ...     safe_action=0.0,
    ...     horizon=150,
    ... ) as plant:
    ...     observation, info = plant.reset()
    ...     observation, reward, terminated, truncated, info = plant.step([1.0])
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(
        self,
        port: str,
        *,
        observations: Mapping[str, Range],
        actions: Mapping[str, Range] | Sequence[str],
        sample_time: float,
        safe_action: float | Sequence[float],
        horizon: int,
        cost: str | None = None,
        reward: str | None = None,
        end: str | None = None,
        emergency: str | None = None,
        log: str | os.PathLike[str] | None = None,
        patience: float = 0.5,
        most_misses: int = 4,
        baud: int = 115_200,
    ) -> None:
        self._signals = signals = Signals.of(observations, actions, safe_action)
        self.observation_space = signals.observation_space
        self.action_space = signals.action_space
        period = real_number("sample_time", sample_time, above=0.0)
        self._horizon = whole_number("horizon", horizon, least=1)
        names = tuple(signals.observations)
        goal = "0" if cost is None and reward is None else reward
        self._objective = Objective.of(names, signals.actions, cost, goal, end)
        self._emergency = (
            None if emergency is None else Formula.parse("emergency", emergency, self._objective.observations)
        )
        self.meaning = Meaning(
            observations=names,
            actions=signals.listed or signals.actions,
            sample_time=period,
            horizon=self._horizon,
        )
        sent = [f"sent {name}" for name in signals.actions]
        columns = [*names, *signals.actions, *sent, "sent by", "board", "arrival [s]", "outside"]
        self._log = None if log is None else StepLog(log, ["episode", "sample", "time [s]", *columns])
        self._loop = SampleLoop(
            (port, whole_number("baud", baud, least=1)),
            signals,
            period=period,
            patience=period * real_number("patience", patience, above=0.0, most=0.9),
            most_misses=whole_number("most_misses", most_misses, least=0),
            emergency=self._emergency_in,
            log=self._log,
        )
        self._seen: Observation | None = None
        self._at_exit: Callable[[], None] | None = _closing(weakref.ref(self))
        atexit.register(self._at_exit)

    def __deepcopy__(self, memo: object) -> Any:
        raise SettingError(
            "There is one plant, and training and evaluation need copies of their environment: play a "
            "controller on it by Hardware.play, and learn from its log by spaql.fit."
        )

    @property
    def counts(self) -> Counts:
        """What came over the line, and what did not."""
        return self._loop.counts

    @property
    def stopped(self) -> str | None:
        """Why the plant was stopped; None if it is not."""
        return self._loop.stopped or None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; up to the first step the board plays the safe action."""
        super().reset(seed=seed)
        if self._loop.stopped:
            raise BadEnvironmentError(
                f"The plant was stopped: {self._loop.stopped}. Look why, and call release() to run it again."
            )
        if self._at_exit is None:
            raise BadEnvironmentError("The connection was closed: make another Hardware.")
        with self._safe_at_exceptions():
            found = self._loop.begin()
            self._first = found.sample
            self._seen = np.array(found.observation, np.float64)
        return self._seen.copy(), self._info(found)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play an action until the next sample, and return what was observed then.

        Where observations do not come in time, the safe action is played, and the step ends with the next one
        that does: `info["missed"]` says how many were skipped, `info["played"]` what the board played upon
        the observation before, as it reports, and `info["stopped"]` why the plant was stopped, if it was.
        """
        if self._seen is None:
            raise BadEnvironmentError("The episode has ended, or none has begun: call reset() first.")
        with self._safe_at_exceptions():
            sent, changed = self._signals.limited(action)
            self.counts.limited += changed
            found = self._loop.exchange(sent)
            before = self._seen
            reward = 0.0
            terminated = False
            if found.observation is not None:
                self._seen = np.array(found.observation, np.float64)
                terminated = bool(self._objective.ends(self._seen[None])[0])
                reward = self._reward(before, found.played or sent, self._seen, terminated)
            terminated = terminated or bool(self._loop.stopped)
            truncated = not terminated and found.sample - self._first >= self._horizon
            seen = self._seen.copy()
            if terminated or truncated:
                self._seen = None
                self._loop.quit()
        return seen, reward, terminated, truncated, self._info(found)

    def emergency_stop(self, reason: str = "emergency_stop() was called") -> None:
        """Stop the plant: the board plays the safe action, and nothing else, until `release` is called.

        It may be called from any thread or signal handler. The episode ends with the step that is under way.
        """
        self._loop.stop(reason)

    def release(self) -> None:
        """Let the plant run again after a stop, from the next `reset` on."""
        self._loop.release()

    def play(self, controller: Predicts, *, episodes: int = 1) -> NDArray[np.float64]:
        """Return the returns of episodes under a controller: an agent, a policy, or anything that predicts.

        It ends before if the plant is stopped.
        """
        ends = self.observation_space.low, self.observation_space.high  # type: ignore[attr-defined]
        controller.predict(np.clip(np.zeros(len(ends[0])), *ends))  # compiled before the plant moves
        returns: list[float] = []
        for _ in range(whole_number("episodes", episodes, least=1)):
            seen, _ = self.reset()
            state = None
            first = True
            done = False
            returns.append(0.0)
            while not done:
                action, state = controller.predict(seen, state, episode_start=np.array([first]))
                seen, reward, terminated, truncated, _ = self.step(action)
                returns[-1] += reward
                first = False
                done = terminated or truncated
            if self._loop.stopped:
                break
        return np.array(returns)

    def close(self) -> None:
        """Play the safe action, and close the connection and the log."""
        if self._at_exit is None:
            return
        self._seen = None
        self._loop.close()
        if self._log is not None:
            self._log.close()
        atexit.unregister(self._at_exit)  # last, so that Ctrl-C in the middle closes it at exit
        self._at_exit = None

    def _reward(self, before: Observation, action: Sequence[float], seen: Observation, ended: bool) -> float:
        first, taken, last = (np.array([one], np.float64) for one in (before, action, seen))
        return float(self._objective.rewards(first, taken, last, np.array([ended]))[0])

    def _emergency_in(self, values: Sequence[float]) -> str:
        """Return why an observation stops the plant; "" if it does not."""
        if self._emergency is None:
            return ""
        rows = np.array(values, np.float64)[:, None]
        holds = self._emergency.holds(dict(zip(self._objective.observations, rows, strict=True)), 1)[0]
        return f"{self._emergency.text} holds" if holds else ""

    def _info(self, found: Exchange) -> dict[str, Any]:
        played = None if found.played is None else np.array(found.played)
        return {
            "sample": found.sample,
            "missed": found.missed,
            "outside": () if found.observation is None else self._signals.outside(found.observation)[0],
            "played": played,
            "stopped": self.stopped,
        }

    @contextmanager
    def _safe_at_exceptions(self) -> Iterator[None]:
        """Play the safe action if anything fails, Ctrl-C included; a broken connection is closed."""
        try:
            yield
        except BaseException:
            self._seen = None
            self._loop.close()
            raise


def _closing(plant: weakref.ref[Hardware]) -> Callable[[], None]:
    """Return what closes a plant when the process ends, as long as there is one."""

    def close() -> None:
        if (there := plant()) is not None:
            there.close()

    return close
