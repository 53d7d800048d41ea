"""The other side of the line, simulated: a board with a plant, on this machine only.

    python simulated_board.py

simulates a motor on port 5025 until Ctrl-C.
"""

from __future__ import annotations

import math
import os
import select
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from spaql.errors import SettingError
from spaql.plugins.hardware import protocol
from spaql.plugins.hardware.declaration import Range
from spaql.plugins.hardware.protocol import as_sent, decoded, encoded
from spaql.problems.meaning import meaning_of
from spaql.values import real_number, whole_number

Numbers = tuple[float, ...]
_LATE = (0.6, 0.9)
"""How late a late line is, as a share of the sample time; actions come after the next sample."""


@dataclass
class BoardSample:
    """What a simulated board knows of a sample, for comparison with the log of the other side."""

    episode: int
    number: int
    observation: Numbers
    played: Numbers
    """What was played from this sample to the next one."""
    state: str
    fate: str
    """What became of the observation: `sent`, `late`, `lost`, or `damaged`."""
    actions: list[tuple[float, str]] = field(default_factory=list)
    """Lines with an action that came before the next sample: seconds after this one, and what became of it:
    `played`, `late`, `lost`, or `old` if it is for another sample."""
    behind: float = 0.0
    """Seconds by which it was taken too late, because the machine was busy."""


class SimulatedBoard:
    """A board that plays any Gymnasium environment in real time, and loses or delays lines.

    It listens on 127.0.0.1, or on a pseudo-terminal, and runs in a thread. The plant goes on when an
    environment would end its episode; it stays where it is if that is by `terminated`.

    Parameters
    ----------
    env
        The plant: an id, or an environment.
    sample_time
        Seconds between two samples; they need not be those of the environment, whose steps are then played
        faster or slower.
    safe_action
        What is played if there is no action to play.
    tcp_port
        Number of the port on 127.0.0.1; a free one by default.
    terminal
        Use a pseudo-terminal instead of TCP, where there are any: Linux and macOS.
    watchdog
        Samples without an action after which the safe action is played.
    lost, late, damaged
        Shares of lines, in both directions, that are lost, delayed or changed.
    seed
        Of starts and faults.

    Examples
    --------
    >>> with SimulatedBoard("Pendulum-v1", sample_time=0.01, safe_action=0.0) as board:
    ...     board.port.startswith("tcp://127.0.0.1:")
    True
    """

    def __init__(
        self,
        env: str | gymnasium.Env[Any, Any],
        *,
        sample_time: float,
        safe_action: float | Sequence[float],
        tcp_port: int = 0,
        terminal: bool = False,
        watchdog: int = 3,
        lost: float = 0.0,
        late: float = 0.0,
        damaged: float = 0.0,
        seed: int = 0,
    ) -> None:
        made = gymnasium.make(env) if isinstance(env, str) else env
        self._env = made.unwrapped
        dynamics = getattr(self._env, "dynamics", None)
        names = meaning_of(made) if dynamics is None else dynamics.meaning
        done = made.action_space
        if not isinstance(seen := made.observation_space, Box) or not isinstance(done, Box | Discrete):
            raise SettingError(f"A board needs a Box of observations and simple actions, not {seen}, {done}.")
        self.observations = _named(names.observations, "x", seen)
        """Names and ranges of the observations, as `Hardware` takes them."""
        self.actions: Mapping[str, Range] | tuple[str, ...] = (
            _named(names.actions, "u", done)
            if isinstance(done, Box)
            else tuple(names.actions or map(str, range(int(done.n))))
        )
        """Names and ranges of the actions, or the names of a list of them."""
        self._period = real_number("sample_time", sample_time, above=0.0)
        self._safe: Numbers = tuple(map(as_sent, np.asarray(safe_action, np.float64).ravel().tolist()))
        self._watchdog = whole_number("watchdog", watchdog, least=1)
        self.faults = {"lost": lost, "late": late, "damaged": damaged}
        """Shares of lines; they may be changed at any time."""
        self._rng = np.random.default_rng([seed, 1])
        self._seed = seed
        self.record: list[BoardSample] = []
        """All samples so far."""
        self._line: _Line = (
            _Terminal() if terminal else _Server(whole_number("tcp_port", tcp_port, least=0, most=65_535))
        )
        self.port = self._line.port
        """What `Hardware` takes as its port."""
        self._episode, self._is_on, self._is_stopped, self._over = -1, False, False, threading.Event()
        self._waiting: list[tuple[float, bytes, bool]] = []
        self._played = self._safe
        self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._seen, _ = self._env.reset(seed=seed)
        self._move()  # compiled before time counts

    @property
    def playing(self) -> Numbers:
        """What the actuator does now."""
        return self._played

    @property
    def is_on(self) -> bool:
        """Whether it sends samples."""
        return self._is_on

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._line.close()

    def press_stop(self) -> None:
        """Press the emergency stop of the board."""
        self._is_stopped = True
        self._played = self._safe

    def _run(self) -> None:
        self._next = math.inf
        while not self._over.is_set():
            due = min(self._next, *(at for at, _, _ in self._waiting), time.perf_counter() + 0.1)
            for line in self._line.read(max(due - time.perf_counter(), 0.0)):
                self._come(line)
            # One event at a time, the earliest first, so that they keep their order after a pause.
            first = min(self._waiting, key=lambda one: one[0], default=(math.inf, b"", False))
            if min(self._next, first[0]) > time.perf_counter():
                continue
            if self._next <= first[0]:
                self._tick()
            else:
                self._waiting.remove(first)
                self._line.write(first[1]) if first[2] else self._take(first[1], "late")

    def _fate(self) -> str:
        drawn = self._rng.random()
        for fate, share in self.faults.items():
            if drawn < share:
                return fate
            drawn -= share
        return "sent"

    def _come(self, line: bytes) -> None:
        """Receive a line, or lose, delay or change it."""
        fate = self._fate() if self._is_on else "sent"
        if fate == "late":  # after the next sample, where an action is of no use any more
            self._waiting.append((self._next + _LATE[0] * self._period, line, False))
        elif fate == "sent":
            self._take(line, "played")
        elif self.record and line.startswith(protocol.ACTION.encode()):
            self.record[-1].actions.append((time.perf_counter() - self._at, fate))

    def _take(self, line: bytes, fate: str) -> None:
        words = decoded(line)
        if words is None:
            return
        if words[0] == protocol.ACTION and self._is_on:
            sample = self.record[-1]
            is_new = int(words[1]) == sample.number % protocol.WRAP
            if is_new and not self._is_stopped:
                self._played = tuple(map(float, words[2:]))
                self._last = sample.number
                self._state = "R"
            sample.actions.append((time.perf_counter() - self._at, fate if is_new else "old"))
        elif words[0] == protocol.HELLO:
            counts = len(self.observations), len(self._safe)
            period = round(self._period * 1e6)
            self._send(protocol.IDENTITY, protocol.VERSION, *counts, period, self._watchdog, *self._safe)
        elif words[0] == protocol.GO and not self._is_stopped:
            self._begin()
        elif words[0] in (protocol.QUIT, protocol.STOP, protocol.RELEASE):
            self._is_stopped = (self._is_stopped or words[0] == protocol.STOP) and words[
                0
            ] != protocol.RELEASE
            self._played = self._safe
            self._is_on = self._is_on and words[0] == protocol.STOP
            self._next = self._next if self._is_on else math.inf
            self._send(words[0])

    def _send(self, letter: str, *fields: object) -> None:
        self._line.write(encoded(letter, *fields))

    def _begin(self) -> None:
        self._episode += 1
        self._seen, _ = self._env.reset(seed=self._seed + self._episode)
        self._number = -1
        self._last = -1
        self._state = protocol.WATCHDOG
        self._played = self._safe
        self._is_on = True
        self._ended = False
        self._next = time.perf_counter()
        self._tick()

    def _tick(self) -> None:
        """Move the plant to the next sample, send it, and look whether an action has come."""
        if self._number >= 0:
            self.record[-1].played = self._played
            self.record[-1].state = protocol.STOPPED if self._is_stopped else self._state
            self._move()
        self._number += 1
        self._at = self._next
        self._next = self._next + self._period
        seen = tuple(as_sent(x) for x in np.asarray(self._seen, np.float64).tolist())
        state = protocol.STOPPED if self._is_stopped else self._state
        numbers = self._number % protocol.WRAP, self._last % protocol.WRAP
        line = encoded(protocol.OBSERVATION, *numbers, state, *seen)
        fate = self._fate()
        if fate == "late":
            share = float(self._rng.uniform(*_LATE))
            self._waiting.append((self._at + share * self._period, line, True))
        elif fate != "lost":
            self._line.write(line.replace(b"O", b"o") if fate == "damaged" else line)
        self.record.append(BoardSample(self._episode, self._number, seen, self._safe, state, fate))
        self.record[-1].behind = time.perf_counter() - self._at
        if self._number - self._last > self._watchdog:
            self._played = self._safe
            self._state = protocol.WATCHDOG

    def _move(self) -> None:
        if self._ended:
            return
        action = np.array(self._played)
        if isinstance(space := self._env.action_space, Discrete):
            self._seen, _, self._ended, _, _ = self._env.step(int(self._played[0] + space.start))
        else:
            self._seen, _, self._ended, _, _ = self._env.step(action.astype(space.dtype))


def _named(names: Sequence[str], letter: str, space: Box) -> dict[str, Range]:
    ends = zip(space.low.ravel().tolist(), space.high.ravel().tolist(), strict=True)
    ranges = list(ends)
    return dict(zip(names or [f"{letter}{i}" for i in range(len(ranges))], ranges, strict=True))


class _Line(Protocol):
    port: str

    def read(self, timeout: float) -> list[bytes]:
        """Return the lines that came, after at most this many seconds."""

    def write(self, data: bytes) -> None:
        """Write a line, if somebody is there."""

    def close(self) -> None:
        """Close it."""


class _Server:
    """One client at a time, on 127.0.0.1."""

    def __init__(self, number: int) -> None:
        self._server = socket.create_server(("127.0.0.1", number))
        self.port = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"
        self._client: socket.socket | None = None
        self._rest = b""

    def read(self, timeout: float) -> list[bytes]:
        if not select.select([self._client or self._server], [], [], timeout)[0]:
            return []
        if self._client is None:
            self._client, _ = self._server.accept()
            self._client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._client.settimeout(1.0)
            return []
        try:
            data = self._client.recv(4096)
        except OSError:
            data = b""
        if not data:
            self._leave()
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines

    def write(self, data: bytes) -> None:
        if self._client is not None:
            try:
                self._client.sendall(data)
            except OSError:
                self._leave()

    def _leave(self) -> None:
        assert self._client is not None
        self._client.close()
        self._client = None
        self._rest = b""

    def close(self) -> None:
        if self._client is not None:
            self._leave()
        self._server.close()


class _Terminal:
    """The master of a pseudo-terminal; the other side opens its slave as a serial port."""

    def __init__(self) -> None:
        if not hasattr(os, "openpty"):
            raise SettingError("There are no pseudo-terminals on this system: use TCP.")
        self._master, self._slave = os.openpty()
        self.port = os.ttyname(self._slave)
        self._rest = b""

    def read(self, timeout: float) -> list[bytes]:
        if not select.select([self._master], [], [], timeout)[0]:
            return []
        *lines, self._rest = (self._rest + os.read(self._master, 4096)).split(b"\n")
        return lines

    def write(self, data: bytes) -> None:
        if select.select([], [self._master], [], 0.0)[1]:  # full if nobody reads
            os.write(self._master, data)

    def close(self) -> None:
        os.close(self._master)
        os.close(self._slave)


def main() -> None:
    """Simulate a motor, sampled every 20 ms."""
    with SimulatedBoard("spaql/DCMotor-v0", sample_time=0.02, safe_action=0.0, tcp_port=5025) as board:
        print(board.port)
        threading.Event().wait()


if __name__ == "__main__":
    main()
