"""A board that misbehaves, over TCP and a pseudo-terminal: does the safe action always come in time?

    chrt -f 10 python benchmarks/hardware_faults.py --count 10000

Every fault meets a process of its own, which plays an unsafe action through `spaql.Hardware`. The board is a
process, too, with a real socket or terminal, and takes the times by CLOCK_MONOTONIC. The time is up 1.5
samples after the last good observation, or at SIGINT; the safe action, or a stop, must be at the board within
one sample after that.

On each core a process only sleeps, and passes a byte through a terminal of its own: where it wakes up late,
or the byte takes long, the machine paused, not the loop. Exits with 1 if a safe action is missing, late
without such a pause, or followed by an unsafe one.
"""

import argparse
import gc
import json
import math
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
import tty
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from spaql.problems.hardware import Hardware
from spaql.problems.hardware.protocol import decoded, encoded

Row = dict[str, Any]
Pauses = list[list[float]]
"""When a core began to stand still, and when it no longer did."""

SAFE, UNSAFE = 0.0, 5.0
MISSES = 2
"""Observations in a row that may be missed."""
PATIENCE = 0.5
SAMPLES = 12
"""Of an episode that nothing disturbs."""
FAULTS = (
    "flood",
    "endless line",
    "garbage",
    "half lines",
    "stall",
    "restart",
    "reordering",
    "out of range",
    "disconnect",
    "Ctrl-C",
    "Ctrl-C in a flood",
)
PAUSE = 0.002
"""Seconds by which a process that sleeps may wake up late before that counts as a pause of the machine."""


@dataclass
class Injection:
    """What became of a fault; times in seconds by CLOCK_MONOTONIC."""

    fault: str
    up: float = math.nan
    """When the time was up; NaN if the episode had ended before the fault."""
    safe: float = math.nan
    """When the safe action or a stop came."""
    unsafe: int = 0
    """Unsafe actions after that, upon nothing that the board has sent."""
    ended: float = math.nan
    """When the process had ended."""

    @property
    def delay(self) -> float:
        """Seconds from the time to the safe action; infinite if none came."""
        return math.inf if math.isnan(self.safe) else self.safe - self.up


class Board:
    """A board that plays one fault after the other, as its standard input says."""

    def __init__(self, link: str, period: float) -> None:
        self.period = period
        self.listener: socket.socket | None = None
        self.file: int | None = None
        if link == "tcp":
            self.listener = socket.create_server(("127.0.0.1", 0))
            self.port = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        else:
            self.file, slave = os.openpty()
            tty.setraw(slave)
            os.set_blocking(self.file, False)
            self.port = os.ttyname(slave)
        self.client: socket.socket | None = None

    def begin(self, fault: str, process: int, seed: int) -> None:
        """Expect a process, and a fault."""
        self.rng = random.Random(seed)
        self.found = Injection(fault)
        self.process = process
        self.good = self.rng.randint(2, 5)
        self.junk = self.flood() if "flood" in fault else b"x" * 2000
        self.is_deaf = self.rng.random() < 0.1
        """Whether it confirms nothing, and floods on."""
        self.is_silent = self.rng.random() < 0.5
        self.rest = b""
        self.number = -1
        self.last = 65_535
        self.is_on = False
        self.is_faulty = False
        self.is_flooding = False
        self.next = math.inf
        self.kill = math.inf

    def flood(self) -> bytes:
        """Return what it sends without a pause: noise, and sound lines that mean nothing."""
        old = encoded("O", 0, 0, "R", 0.1, 0.0)
        return self.rng.choice([b"xxx\n" * 500, old * 50, encoded("U") * 200, b"\n" * 2000])

    def run(self) -> None:
        """Play what standard input says, until it ends."""
        print(json.dumps(self.port), flush=True)
        self.begin("none", 0, 0)
        while True:
            line: Any = self.listener if self.file is None else self.file
            writes = [line] if self.is_flooding and self.file is not None else []
            wait = min(self.next, self.kill) - time.monotonic()
            ready, free, _ = select.select([0, line], writes, [], min(max(wait, 0.0), 0.1))
            if self.file in ready:
                self.read()
            if free and self.file is not None:
                self.write(self.junk)
            if self.listener in ready:
                self.accept()
            if time.monotonic() >= self.kill:
                self.interrupt()
            if time.monotonic() >= self.next:
                self.tick()
            if 0 in ready and not self.command(sys.stdin.readline()):
                return

    def command(self, line: str) -> bool:
        """Follow a command; return whether there was one."""
        if line.strip() == "done":
            print(json.dumps(asdict(self.found)), flush=True)
            self.begin("none", 0, 0)
        elif line:
            self.leave()
            self.begin(*json.loads(line))
            while self.file is not None and select.select([self.file], [], [], 0)[0]:
                os.read(self.file, 4096)
            print("ready", flush=True)
        return bool(line)

    def accept(self) -> None:
        assert self.listener is not None
        self.client, _ = self.listener.accept()
        self.client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client.setblocking(False)
        self.file = self.client.fileno()

    def leave(self) -> None:
        """Close the connection; a terminal has none."""
        if self.client is not None:
            self.client.close()
            self.client = self.file = None
        self.is_on, self.next = False, math.inf

    def write(self, data: bytes) -> None:
        try:
            if self.file is not None:
                os.write(self.file, data)
        except BlockingIOError:
            pass
        except OSError:
            self.leave()

    def read(self) -> None:
        assert self.file is not None
        try:
            data = os.read(self.file, 4096)
        except OSError:
            data = b""
        now = time.monotonic()
        if not data:
            self.leave()
        *lines, self.rest = (self.rest + data).split(b"\n")
        for words in filter(None, map(decoded, lines)):
            self.take(words, now)

    def take(self, words: list[str], now: float) -> None:
        letter = words[0]
        if self.is_faulty and now >= self.since:
            is_safe = letter in "QX" or (letter == "A" and float(words[2]) == SAFE)
            is_upon_nothing = self.found.fault not in ("reordering", "Ctrl-C")
            if is_safe and math.isnan(self.found.safe):
                self.found.safe = now
            self.found.unsafe += is_upon_nothing and not is_safe and now > self.found.safe
        if letter == "?":
            self.write(encoded("I", 1, 2, 1, round(self.period * 1e6), 3, SAFE))
        elif letter in "QXU":
            self.is_on = self.is_on and letter == "X" and self.is_faulty
            self.next = self.next if self.is_on else math.inf
            self.kill = math.inf if letter == "Q" and not self.is_faulty else self.kill
            if not (self.is_flooding and self.is_deaf):
                self.is_flooding = False
                self.write(encoded(letter))
        elif letter == "G":
            self.is_on, self.number, self.next = True, -1, now
            if self.found.fault == "Ctrl-C":
                self.kill = now + self.rng.uniform(0, 1.2 * SAMPLES * self.period)
        elif letter == "A":
            self.last = int(words[1])

    def interrupt(self) -> None:
        """Send SIGINT to the process."""
        self.kill = math.inf
        now = time.monotonic()
        if not self.is_faulty:
            self.start(now)
        self.found.up = min(self.found.up, now) if self.found.fault != "Ctrl-C" else now
        try:
            os.kill(self.process, signal.SIGINT)
        except ProcessLookupError:  # it has just ended
            self.found.up = math.nan

    def start(self, last_good: float) -> None:
        """Begin with the fault."""
        self.is_faulty = True
        self.since = time.monotonic()
        self.is_flooding = "flood" in self.found.fault or self.found.fault == "endless line"
        self.found.up = last_good + (1 + PATIENCE) * self.period

    def tick(self) -> None:
        """Send a sample, or what is wrong with it."""
        at = self.next
        self.next += self.period
        self.number += 1
        fault = self.found.fault
        if not self.is_faulty and self.number == self.good and fault != "Ctrl-C":
            self.start(at - self.period * (fault != "reordering"))
            if fault == "Ctrl-C in a flood":
                self.kill = at + self.rng.uniform(0, 2 * self.period)
        number = self.number
        if self.is_faulty and fault == "reordering":
            number += 1 - 2 * ((number - self.good) % 2)
        line = encoded("O", number % 65_536, self.last, "R", 0.1, 0.0)
        if not self.is_faulty or fault in ("reordering", "Ctrl-C"):
            self.write(line)
        elif fault == "disconnect":
            self.disconnect()
        else:
            self.write(self.instead(fault, line))

    def instead(self, fault: str, line: bytes) -> bytes:
        """Return what is sent in place of a good line; floods come besides."""
        number = self.number - self.good
        if fault == "garbage":
            return self.rng.randbytes(60)
        if fault == "half lines":
            return line[: self.rng.randrange(1, len(line) - 1)]
        if fault == "restart":
            return b"" if self.is_silent else encoded("O", number, 65_535, "W", 0.1, 0.0)
        if fault == "out of range":
            value = self.rng.choice([1e308, -1e308, 25.0, -30.0, math.nan, math.inf])
            return encoded("O", self.number, self.last, "R", value, 0.0)
        return b""

    def disconnect(self) -> None:
        """Send no more; what comes is still read."""
        assert self.client is not None
        self.client.shutdown(socket.SHUT_WR)
        self.next = math.inf


def play(port: str, period: float) -> None:
    """Play the unsafe action until the episode ends."""
    plant = Hardware(
        port,
        observations={"x": (-20, 20), "v": (-20, 20)},
        actions={"u": (-12, 12)},
        sample_time=period,
        safe_action=SAFE,
        horizon=SAMPLES,
        patience=PATIENCE,
        most_misses=MISSES,
    )
    with plant:
        plant.reset()
        over = False
        while not over:
            _, _, terminated, truncated, _ = plant.step([UNSAFE])
            over = terminated or truncated


def injected(board: subprocess.Popen[str], fault: str, seed: int, port: str, period: float) -> Injection:
    """Return what became of a fault, which meets a process of its own, and does not return there."""
    assert board.stdin is not None
    assert board.stdout is not None
    wait, go = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(go)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the traceback of Ctrl-C
        os.read(wait, 1)
        play(port, period)
        if "Ctrl-C" in fault:
            sys.exit()
        os._exit(0)  # all is closed, and Python's own end takes long
    print(json.dumps([fault, process, seed]), file=board.stdin, flush=True)
    board.stdout.readline()
    os.write(go, b"!")
    os.waitpid(process, 0)
    ended = time.monotonic()
    os.close(wait)
    os.close(go)
    print("done", file=board.stdin, flush=True)
    found = Injection(**json.loads(board.stdout.readline()))
    found.ended = ended
    return found


def watch(core: int) -> None:
    """Print when a core, or the bytes in a terminal, stood still, at the end of standard input."""
    os.sched_setaffinity(0, [core])
    policy = os.sched_getscheduler(0)
    if policy != os.SCHED_OTHER:  # above the others, which may keep the core busy
        os.sched_setscheduler(0, policy, os.sched_param(os.sched_getparam(0).sched_priority + 1))
    near, far = os.openpty()
    tty.setraw(far)
    slept: Pauses = []
    passed: Pauses = []
    while not select.select([0], [], [], 0)[0]:
        before = time.monotonic()
        time.sleep(0.001)
        woken = time.monotonic()
        os.write(far, b"x")
        os.read(near, 1)
        now = time.monotonic()
        slept += [[before, woken]] if woken > before + 0.001 + PAUSE else []
        passed += [[woken, now]] if now > woken + PAUSE else []
    print(json.dumps([slept, passed]))


def started(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def faults_of(link: str) -> list[str]:
    """Return the faults that there are over a link: a terminal cannot close one direction."""
    return [fault for fault in FAULTS if link == "tcp" or fault != "disconnect"]


def study(link: str, count: int, period: float, seed: int) -> list[Injection]:
    """Return what became of so many faults over a link."""
    rng = random.Random(f"{seed} {link}")
    faults = faults_of(link)
    board = started("--board", link, "--period", str(period))
    assert board.stdin is not None
    assert board.stdout is not None
    port = json.loads(board.stdout.readline())
    found: list[Injection] = []
    while len(found) < count:
        fault = faults[len(found) % len(faults)]
        injection = injected(board, fault, rng.getrandbits(32), port, period)
        if not math.isnan(injection.up):  # otherwise the episode had ended before
            found.append(injection)
            if not injection.delay <= period:
                print(f"{link}: {injection.fault}, seed {seed} {injection}", file=sys.stderr)
    board.stdin.close()
    board.wait()
    return found


def is_paused(found: Injection, pauses: Pauses, period: float) -> bool:
    """Return whether the machine stood still while the safe action was awaited."""
    return any(start < found.safe and end > found.up - period for start, end in pauses)


def row(link: str, fault: str, those: list[Injection], pauses: Pauses, period: float) -> Row:
    """Return what is printed of a fault."""
    delays = 1e3 * np.array([one.delay for one in those])
    late = [one for one in those if one.delay > period]
    return {
        "link": link,
        "fault": fault,
        "count": len(those),
        "median [ms]": round(float(np.median(delays)), 1),
        "99.9 % [ms]": round(float(np.quantile(delays, 0.999, method="higher")), 1),
        "worst [ms]": round(float(delays.max()), 1),
        "none": int(np.isinf(delays).sum()),
        "late": len(late),
        "in a pause": sum(is_paused(one, pauses, period) for one in late),
        "unsafe": sum(one.unsafe > 0 for one in those),
        "ended [s]": round(max(one.ended - one.up for one in those), 2),
    }


def main() -> int:
    """Inject, and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="of faults")
    parser.add_argument("--period", type=float, default=0.01, help="seconds of a sample")
    parser.add_argument("--links", nargs="+", default=["tcp", "terminal"], help="which, each as often")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    parser.add_argument("--board", help=argparse.SUPPRESS)
    parser.add_argument("--watch", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.board:
        Board(given.board, given.period).run()
        return 0
    if given.watch is not None:
        watch(given.watch)
        return 0
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    gc.freeze()
    watches = [started("--watch", str(core)) for core in os.sched_getaffinity(0)]
    found = {
        link: study(link, given.count // len(given.links), given.period, given.seed) for link in given.links
    }
    told = [json.loads(one.communicate("")[0]) for one in watches]
    slept: Pauses = [pause for one in told for pause in one[0]]
    passed: Pauses = [pause for one in told for pause in one[1]]
    rows = [
        row(
            link,
            fault,
            [one for one in those if fault in (one.fault, "all")],
            slept + (passed if link == "terminal" else []),
            given.period,
        )
        for link, those in found.items()
        for fault in (*faults_of(link), "all")
    ]
    if given.json:
        print(json.dumps({"rows": rows, "slept": len(slept), "passed": len(passed)}))
    else:
        print(" | ".join(rows[0]))
        print("\n".join(" | ".join(str(cell) for cell in one.values()) for one in rows))
        for what, pauses in (("a core", slept), ("bytes in a terminal", passed)):
            longest = 1e3 * max((end - start for start, end in pauses), default=0.0)
            print(f"pauses of {what}: {len(pauses):,}, the longest {longest:.1f} ms")
    return int(any(one["none"] or one["unsafe"] or one["late"] > one["in a pause"] for one in rows))


if __name__ == "__main__":
    sys.exit(main())
