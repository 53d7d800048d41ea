"""A board that misbehaves, over TCP: does the safe action always come in time?

    chrt -f 10 python benchmarks/hardware_faults.py --seeds 0-999

Every fault of every seed meets a process of its own, which plays an unsafe action through `spaql.Hardware`.
The time is up 1.5 samples after the last good observation, or at SIGINT; the safe action, or a stop, must be
at the board within one sample after that. Exits with 1 if it is missing, or followed by an unsafe action.
Late ones are counted: a machine that pauses makes some.
"""

from __future__ import annotations

import math
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from spaql.plugins.hardware.protocol import encoded
from studies import TESTS, Row, column, groups, parser, run, show

sys.path.append(TESTS)

from scripted_board import Scripted

PLAYER = """
import sys
from spaql.plugins.hardware import Hardware

plant = Hardware(sys.argv[1], observations={"x": (-20, 20), "v": (-20, 20)}, actions={"u": (-12, 12)},
                 sample_time=float(sys.argv[2]), safe_action=0.0, horizon=1000, most_misses=2)
with plant:
    plant.reset()
    over = False
    while not over:
        _, _, terminated, over, _ = plant.step([5.0])
        over |= terminated
"""
FLOODS = (b"xxx\n" * 500, encoded("O", 0, 0, "R", 0.1, 0.0) * 50, encoded("U") * 200, b"\n" * 2000)
FAULTS: dict[str, Callable[[random.Random, int], bytes]] = {
    "flood": lambda rng, k: b"",
    "endless line": lambda rng, k: b"",
    "garbage": lambda rng, k: rng.randbytes(60),
    "half lines": lambda rng, k: sample(k)[: rng.randrange(1, len(sample(k)) - 1)],
    "silence": lambda rng, k: b"",
    "restart": lambda rng, k: encoded("O", 0, 65_535, "W", 0.1, 0.0),
    "out of range": lambda rng, k: sample(k, rng.choice([1e308, -1e308, 25.0, -30.0, math.nan, math.inf])),
    "Ctrl-C": lambda rng, k: sample(k),
    "Ctrl-C in a flood": lambda rng, k: b"",
}
"""What is sent in place of a sample."""


def sample(number: int, x: float = 0.1) -> bytes:
    return encoded("O", number, 65_535, "R", x, 0.0)


def injected(case: Row) -> Row:
    """Return how long after its time the safe action came, and how many unsafe ones followed."""
    fault = case["fault"]
    period = case["period"]
    rng = random.Random(f"{fault} {case['seed']}")
    good = rng.randint(4, 8)
    sent = []

    def script(number: int) -> bytes:
        sent.append(time.monotonic())
        return sample(number) if number < good else FAULTS[fault](rng, number)

    floods = rng.choice(FLOODS) if "flood" in fault else b"x" * 2000 if fault == "endless line" else b""
    board = Scripted(script, floods, period)
    board.thread.start()
    words = [sys.executable, "-c", PLAYER, board.port, str(period)]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    while len(sent) <= good and process.poll() is None:
        time.sleep(period / 10)
    up = sent[good - 1] + 1.5 * period
    if "Ctrl-C" in fault:
        time.sleep(rng.uniform(0, period))
        up = time.monotonic() if fault == "Ctrl-C" else min(up, time.monotonic())
        process.send_signal(signal.SIGINT)
    process.wait(60)
    ended = time.monotonic()
    board.is_over.set()
    board.thread.join()
    begun = up if fault == "Ctrl-C" else sent[good]
    after = [(at, words) for at, words in board.heard if at > begun]
    safe = [at for at, words in after if words[0] in "QX" or (words[0] == "A" and float(words[2]) == 0.0)]
    first = min(safe, default=math.inf)
    unsafe = sum(at > first and words[0] == "A" and float(words[2]) != 0.0 for at, words in after)
    return {"delay": first - up, "unsafe": unsafe, "ended": ended - up}


def main() -> int:
    """Inject, and print; return the exit code."""
    options = parser(__doc__, seeds="0-99")
    options.add_argument("--period", type=float, default=0.01, help="seconds of a sample")
    given = options.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    cases = [{"fault": fault, "seed": k, "period": given.period} for k in given.seeds for fault in FAULTS]
    found = run(injected, cases, given)
    lines = []
    for (fault,), some in groups(found, "fault").items():
        delays = column(some, "delay")
        late = {"none": int((delays == math.inf).sum()), "late": int((delays > given.period).sum())}
        times = {"worst [ms]": 1e3 * float(delays.max()), "ended [s]": float(column(some, "ended").max())}
        lines.append(
            {"fault": fault, "count": len(some)}
            | late
            | times
            | {"unsafe": sum(one["unsafe"] for one in some)}
        )
    show(lines)
    return int(any(one["none"] or one["unsafe"] for one in lines))


if __name__ == "__main__":
    sys.exit(main())
