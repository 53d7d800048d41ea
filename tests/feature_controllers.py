"""Controllers with memory for tests: random ones, one made by hand, and a slow definition of what they do."""

import math

import numpy as np
from gymnasium.spaces import Box

from spaql.controllers import (
    Angle,
    AngleError,
    Controller,
    Difference,
    Error,
    FilteredDerivative,
    Integral,
    Lag,
    LastAction,
    Laws,
    LowPass,
    Observed,
    Product,
    Square,
)

SEEN = ("level [m]", "set-point [m]", "sine", "cosine")
DONE = ("pump [V]", "valve")
OBSERVATIONS = Box(-2.0, 2.0, (4,), np.float64)
ACTIONS = Box(np.array([-1.0, 0.0]), np.array([1.0, 0.5]), (2,), np.float64)
ALL = (
    Error("error", "set-point", "level"),
    Observed("level"),
    Integral("integral", "error", limit=3.0, start=0.25),
    Difference("change", "error"),
    Difference("second change", "change"),
    FilteredDerivative("slope", "level", time_constant=0.7),
    Lag("level before", "level"),
    Lag("error 3 before", "error", 3),
    LowPass("slow level", "level [m]", 1.5),
    LastAction("pump before", "pump"),
    LastAction("valve 2 before", "valve", 2),
    Product("drive", "error", "cosine"),
    Square("energy", "change"),
    Angle("angle", "sine", "cosine"),
    AngleError("turn", "set-point", "angle"),
)
TWO_CUTS = {
    "feature": [0, len(ALL), -1, -1, -1],
    "threshold": [0.3, -0.1, 0.0, 0.0, 0.0],
    "left": [1, 3, -1, -1, -1],
    "right": [2, 4, -1, -1, -1],
    "leaf": [-1, -1, 0, 1, 2],
}


def random_controller(seed: int, **changes) -> Controller:
    """Return a controller with every kind of feature, three leaves and all limits, with random numbers."""
    rng = np.random.default_rng(seed)
    n = len(ALL)
    gain = rng.normal(size=(3, 2, n)) * (rng.random((3, 2, n)) < 0.6)
    form = changes.pop("form", str(rng.choice(["position", "velocity"])))
    weights = rng.normal(size=(1, n)) * (rng.random((1, n)) < 0.4)
    weights[0, 1] = 1.0
    settings = {
        "laws": Laws(gain, rng.normal(size=(3, 2)) * 0.2),
        "sample_time": 0.2,
        "rate_limit": (float(rng.choice([0.7, 2.5, math.inf])), math.inf),
        "dead_band": (0.0, float(rng.choice([0.0, 0.02]))),
        "start": (0.1, 0.2),
        "hysteresis": (0.2, *[0.0] * (n - 1), 0.3) if rng.random() < 0.5 else (),
    }
    return Controller(
        features=ALL,
        **TWO_CUTS,
        combinations=weights,
        form=form,
        observation_space=OBSERVATIONS,
        action_space=ACTIONS,
        observations=SEEN,
        actions=DONE,
        **settings | changes,
    )


def two_leaf_pi(limit: float = 20.0, **changes) -> Controller:
    """Return a PI controller with other gains far from the set-point, and a rate limit."""
    settings = {
        "features": (Error("error", "set-point", "level"), Integral("integral", "error", limit=limit)),
        "feature": [0, -1, -1],
        "threshold": [0.4, 0.0, 0.0],
        "left": [1, -1, -1],
        "right": [2, -1, -1],
        "leaf": [-1, 0, 1],
        "laws": Laws([[[3.1, 0.7]], [[6.3, 0.35]]], [[0.0], [0.5]]),
        "observation_space": Box(0.0, 2.0, (2,), np.float32),
        "action_space": Box(0.0, 10.0, (1,), np.float32),
        "observations": ("level [m]", "set-point [m]"),
        "actions": ("pump [V]",),
        "sample_time": 0.5,
        "rate_limit": 3.0,
    }
    return Controller(**settings | changes)


class Reference:
    """One episode of a controller, from the whole history, with the tree asked for its leaves."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.history = []
        self.done = []
        self.leaf = None
        self.last = np.array(controller.start)
        self.target = self.last.copy()
        self.integral = {f.name: f.start for f in controller.features if isinstance(f, Integral)}
        self.low_pass = {}
        self.slope = {}

    def value(self, name: str, at: int) -> float:
        return self.history[max(at, 0)][name.split(" [")[0]]

    def compute(self, feature, at: int) -> float:
        step = self.controller.sample_time
        seconds = getattr(feature, "time_constant", 0.0)
        share = step / (step + seconds)
        first = at == 0
        if isinstance(feature, LastAction):
            row = [name.split(" [")[0] for name in self.controller.actions].index(feature.of)
            return (
                self.done[at - feature.samples][row] if at >= feature.samples else self.controller.start[row]
            )
        if isinstance(feature, Integral):
            return self.integral[feature.name]
        now = self.value(getattr(feature, feature.sources[0]), at)
        other = self.value(getattr(feature, feature.sources[-1]), at)
        if isinstance(feature, Observed):
            return now
        if isinstance(feature, AngleError):
            return math.remainder(now - other, math.tau)
        if isinstance(feature, Error):
            return now - other
        if isinstance(feature, Product | Square):
            return now * other
        if isinstance(feature, Angle):
            return math.atan2(now + 0.0, other + 0.0)  # without minus zero
        if isinstance(feature, Difference):
            return now - self.value(feature.of, at - 1)
        if isinstance(feature, Lag):
            return self.value(feature.of, at - feature.samples)
        before = self.history[at - 1][feature.name] if not first else 0.0
        if isinstance(feature, LowPass):
            return now if first else before + share * (now - before)
        return 0.0 if first else before + share * ((now - self.value(feature.of, at - 1)) / step - before)

    def keeps(self, x) -> bool:
        """Return whether the last leaf is kept, by its box of compared numbers widened by the margins."""
        controller = self.controller
        margin = np.array(controller.hysteresis)
        if self.leaf is None or not margin.any():
            return False
        low, high, _ = controller.box(self.leaf)
        numbers = controller.numbers(x[np.newaxis])[0]
        return bool(np.all((numbers >= low - margin) & (numbers < high + margin)))

    def act(self, observation):
        controller = self.controller
        at = len(self.history)
        names = (name.split(" [")[0] for name in controller.observations)
        self.history.append(dict(zip(names, observation, strict=True)))
        for feature in controller.features:
            self.history[-1][feature.name] = self.compute(feature, at)
        x = np.array([self.history[-1][feature.name] for feature in controller.features])
        if not self.keeps(x):
            self.leaf = controller.leaf_number(x)
        row = controller.box(self.leaf)[2]
        laws = controller.laws
        wish = laws.offset[row] + laws.gain[row] @ x
        wish = wish + self.target if controller.form == "velocity" else wish
        rate = np.array(controller.rate_limit) * controller.sample_time
        u = np.clip(wish, self.last - rate, self.last + rate)
        self.target = np.clip(u, controller.action_space.low.ravel(), controller.action_space.high.ravel())
        action = np.where(np.abs(self.target - self.last) < controller.dead_band, self.last, self.target)
        for j, feature in enumerate(controller.features):
            if isinstance(feature, Integral):
                now = self.value(feature.of, at)
                cut = np.where(np.abs(wish - self.target) > 1e-12, wish - self.target, 0.0)
                if not np.any(cut * laws.gain[row, :, j] * now > 0):
                    total = self.integral[feature.name] + controller.sample_time * now
                    self.integral[feature.name] = float(np.clip(total, -feature.limit, feature.limit))
        self.last = action
        self.done.append(action)
        return x, wish, action
