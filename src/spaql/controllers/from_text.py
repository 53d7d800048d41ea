"""Controllers from text: the inverse of `spaql.controllers.text`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from spaql.controllers.controller import Controller
from spaql.controllers.feature_table import feature_names
from spaql.controllers.features import FEATURES, Feature, Observed
from spaql.controllers.limits import checked_action
from spaql.controllers.mirrored import Fold
from spaql.controllers.rules_reader import Lines, RuleReader, among, is_rounded, with_short
from spaql.errors import SettingError, nearest
from spaql.problems import EnvironmentLike, make_problem
from spaql.spaces import action_names, find_observation, observation_names, space_bounds, split_unit

Names = Sequence[str] | Mapping[str, tuple[float, float]]
_FEATURE = re.compile(r"(.+?)(?: \[(.+?)\])? = (.+)")
_MIRROR = (
    r"mirror so that ({0}) >= 0 \(({0}(?:, {0})*(?: and {0})?) changes? sign"
    r"((?:; {0} and {0} are exchanged)*)\):"
)
_NUMBER = r"-?(?:inf|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)"
_LIMITS = [
    pattern.replace("#", _NUMBER)
    for pattern in (
        r"(?P<action>{0}): within (?P<low>#) and (?P<high>#)(?:, changed by at most (?P<rate_limit>#) .+?)?"
        r"(?:, not changed by less than (?P<dead_band>#))?(?:; from (?P<start>#) at a reset)?",
        r"Before the first sample the action counts as (?P<first>{0})\.",
        r"Hysteresis: a leaf is left when (?P<number>.+) misses its condition by (?P<margin>#) or more\.",
        r"A sample every (?P<sample_time>#) s\.",
    )
]
"""The lines of `text.limits_text`."""


def rules(
    text: str,
    like: EnvironmentLike | Controller | None = None,
    *,
    observations: Names = (),
    actions: Names = (),
) -> Controller:
    """Return the controller of a text: of all that `spaql.controllers.text` and `spaql show` print.

    In text that is written by hand, conditions may also have `<=`, `>`, `>=`, `and`, `or`, `not` and sums on
    both sides, laws may be any sum of inputs times numbers, units may be left out, and so may the limits of
    the action.

    Parameters
    ----------
    text
        Features, rules and laws, and limits, in this order. Remarks begin with `#`, and are not read.
    like
        A problem (or what `make_problem` takes) or a controller, whose observations and actions it has.
    observations
        Instead of it, the names of observations, which may have ranges.
    actions
        The names of discrete actions; or the names of the components of an action, with their ranges.

    Examples
    --------
    >>> import spaql
    >>> controller = spaql.rules(
    ...     '''
    ...     error = set-point - level
    ...     integral = integral of error within -50 and 50
    ...     pump = 2 * (error + integral / 4)
    ...     A sample every 2 s.
    ...     ''',
    ...     observations=["level [m]", "set-point [m]"],
    ...     actions={"pump [V]": (0, 10)},
    ... )
    >>> print(controller)  # doctest: +NORMALIZE_WHITESPACE
    error [m] = set-point - level
    integral [m s] = integral of error within -50 and 50, from 0: += 2 s * error; waits while it would push a
        limited action further
    <BLANKLINE>
    pump [V] = 2.0 * error [m] + 0.5 * integral [m s]
    <BLANKLINE>
    pump [V]: within 0 and 10; from 0 at a reset
    A sample every 2 s.
    # a PI controller, Kp = 2, Ti = 4 s
    >>> spaql.rules("push left if pole angel < 0 else push right", "CartPole-v1")
    Traceback (most recent call last):
        ...
    spaql.errors.SettingError: Line 1: there is no 'pole angel': did you mean pole angle?
    """
    frame = _frame(like, observations, actions)
    lines = Lines(text, with_short([*frame["observations"], *frame["actions"]]))
    discrete = isinstance(frame["action_space"], Discrete)
    components = ("action",) if discrete else frame["actions"]
    features, written = _features(lines, frame, components)
    inputs = feature_names(features, frame["observations"], components) or frame["observations"]
    mirror = _mirror(lines, inputs, frame["actions"])
    reader = RuleReader(lines, inputs, frame["actions"], frame["action_space"])
    reader.read()
    limits = _limits(lines, frame, reader)
    controller = Controller(**reader.fields(), features=tuple(features), **frame, **limits)
    for line, offset in reader.constants() if not (discrete or controller.remembers) else ():
        checked_action(controller, offset, f"The action in line {line}")
    for line, feature, parts in written:
        computed = re.fullmatch(parts.re.pattern, feature.formula(controller.sample_time or 1.0))
        for name, text in parts.groupdict().items():
            if name in ("dt", "share", "counted") and computed and text not in (None, computed[name]):
                raise lines.fail(f"{text!r} is {computed[name]!r} here, or may be left out.", line)
    return controller if mirror is None else _unfolded(controller, *mirror)


def _frame(like: EnvironmentLike | Controller | None, observations: Names, actions: Names) -> dict[str, Any]:
    """Return the spaces of a controller and the names in them, as its fields."""
    if (like is None) == (not observations and not actions):
        raise SettingError(
            "Rules are for a problem, or else for observations and actions: give one of the two."
        )
    if isinstance(like, Controller):
        names = ("observation_space", "action_space", "observations", "actions")
        return {name: getattr(like, name) for name in names}
    if like is not None:
        problem = make_problem(like, measured=False)
        seen, done = problem.states, problem.actions
        spaces = {"observation_space": seen.space, "action_space": done.space}
        names_in = observation_names(seen.space, seen.names), action_names(done.space, done.names)
        return {**spaces, "observations": names_in[0], "actions": names_in[1]}
    listed = not isinstance(actions, Mapping)
    return {
        "observation_space": _box(observations),
        "action_space": Discrete(len(actions)) if listed else _box(actions),
        "observations": tuple(observations),
        "actions": tuple(actions),
    }


def _box(names: Names) -> Box:
    ranges = names.values() if isinstance(names, Mapping) else [(-np.inf, np.inf)] * len(names)
    low, high = np.array([*ranges], np.float64).reshape(-1, 2).T
    return Box(low, high, dtype=np.float64)


def _features(
    lines: Lines, frame: dict[str, Any], components: tuple[str, ...]
) -> tuple[list[Feature], list[tuple[int, Feature, re.Match[str]]]]:
    """Read the declared features; returns them, and for each its line and what is written there."""
    features: list[Feature] = []
    written = []
    done = with_short(frame["actions"])
    laws = () if isinstance(frame["action_space"], Discrete) else done
    while (match := _FEATURE.fullmatch(lines.content)) and not (
        lines.content in done or match[1] in laws or match[1].startswith(("if ", "else", "mirror so that "))
    ):
        known = [*frame["observations"], *components, *(feature.name for feature in features)]
        kind, parts = _declaration(lines, match[3], known)
        try:
            features.append(_feature(kind, match[1], match[2] or "", parts))
            feature_names(features, frame["observations"], components)
        except SettingError as error:
            raise lines.fail(str(error)) from None
        written.append((lines.line[0], features[-1], parts))
        lines.advance()
    return features, written


def _declaration(lines: Lines, formula: str, known: Sequence[str]) -> tuple[type[Feature], re.Match[str]]:
    """Return the kind of feature that a formula is, and its parts.

    If there is none of known names, it is one of unknown names, which is then refused for them.
    """
    for kinds, names in (
        (list(FEATURES.values()), among(with_short(known))),
        ([kind for kind in FEATURES.values() if kind is not Observed], r"\w[\w -]*?"),
    ):
        for kind in kinds:
            if parts := re.fullmatch(_pattern(kind, names), formula):
                return kind, parts
    forms = [
        re.sub(r"\[.*\]|\{(\w+)\}", lambda field: (field[1] or "").upper(), kind.text)
        for kind in FEATURES.values()
    ]
    raise lines.fail(
        f"there is no {formula!r}: {nearest(formula, [*(split_unit(name)[0] for name in known), *forms])}"
    )


def _pattern(kind: type[Feature], sources: str) -> str:
    """Return a pattern of what `Feature.formula` writes, with a pattern of the names of sources."""
    pattern = ""
    for part in re.split(r"(\{\w+\}|[\[\]])", kind.text):
        name = part[1:-1]
        if part in ("[", "]"):
            pattern += "(?:" if part == "[" else ")?"
        elif not part.startswith("{"):
            pattern += re.escape(part)
        elif f"(?P<{name}>" in pattern:
            pattern += f"(?P={name})"
        else:
            inner = {
                "ago": r"a sample before|\d+ samples before",
                "dt": ".*?",
                "share": ".*?",
                "counted": ".*?",
            }
            inner |= {"name": ".*?"} | dict.fromkeys(kind.sources, sources)
            pattern += f"(?P<{name}>{inner.get(name, _NUMBER)})"
    return pattern


def _feature(kind: type[Feature], name: str, unit: str, parts: re.Match[str]) -> Feature:
    """Return a feature; what is not written has its default."""
    settings: dict[str, Any] = {"name": name, "unit": unit}
    for field, text in parts.groupdict().items():
        if field == "ago":
            settings["samples"] = (
                1 if text == "a sample before" else int(text.removesuffix(" samples before"))
            )
        elif text is not None and field in kind.__dataclass_fields__ and field != "name":
            settings[field] = text if field in kind.sources else float(text)
    return kind(**settings)


def _mirror(
    lines: Lines, inputs: Sequence[str], actions: Sequence[str]
) -> tuple[int, list[str], list[tuple[str, str]]] | None:
    """Read the heading of rules for one half: its side, what changes sign, and what is exchanged."""
    if not lines.content.startswith("mirror so that "):
        return None
    names = among(with_short([*inputs, *actions]))
    match = re.fullmatch(_MIRROR.replace("{0}", names), lines.content)
    if match is None:
        raise lines.expected("'mirror so that x >= 0 (x and u change sign; a and b are exchanged):'")
    if both := {*with_short(inputs)} & {*with_short(actions)}:
        raise lines.fail(f"{both.pop()!r} is the name of an observation and of an action.")
    lines.advance()
    pairs = re.findall(rf"; ({names}) and ({names}) are exchanged", match[3])
    return find_observation(match[1], inputs), re.findall(names, match[2]), pairs


def _unfolded(half: Controller, side: int, negated: list[str], pairs: list[tuple[str, str]]) -> Controller:
    """Return the controller of rules for one half."""
    inputs = with_short(half.inputs)
    images = {j: (j, 1) for j in range(half.dims)}
    signs = [1] * len(half.actions)
    exchanged = {a: a for a in range(len(half.actions))}
    for name in negated:
        if name in inputs:
            j = find_observation(name, half.inputs)
            images[j] = (j, -1)
        else:
            signs[find_observation(name, half.actions)] = -1
    for pair in pairs:
        observed = pair[0] in inputs
        i, j = (find_observation(name, half.inputs if observed else half.actions) for name in pair)
        if observed:
            images |= {i: (j, 1), j: (i, 1)}
        else:
            exchanged |= {i: j, j: i}
    whole = Fold(half, side, tuple(signs), images, exchanged).unfolded(half)
    if whole is None:
        raise SettingError("Rules for one half have actions or affine laws, and no scores of actions.")
    return whole


def _limits(lines: Lines, frame: dict[str, Any], reader: RuleReader) -> dict[str, Any]:
    """Read the lines about the limits of the action, hysteresis and the sample time, as fields."""
    actions = frame["actions"]
    low, high = space_bounds(frame["action_space"])
    free = {"rate_limit": np.full(len(low), np.inf), "dead_band": 0.0 * low, "start": np.clip(0.0, low, high)}
    fields: dict[str, Any] = {}
    margins: dict[int, float] = {}
    while lines.content:
        names = among(with_short(actions))
        found = [re.fullmatch(pattern.replace("{0}", names), lines.content) for pattern in _LIMITS]
        parts = next((match.groupdict() for match in found if match), {})
        if "action" in parts and not isinstance(frame["action_space"], Discrete):
            k = find_observation(parts["action"], actions)
            for end, bound in (("low", low[k]), ("high", high[k])):
                if not is_rounded(float(parts[end]), float(bound)):
                    raise lines.expected(f"{bound:g} as an end of the range, as in the problem")
            for name in free:
                if parts[name] is not None:
                    fields.setdefault(name, free[name])[k] = float(parts[name])
        elif "first" in parts and isinstance(frame["action_space"], Discrete):
            fields["start"] = low + find_observation(parts["first"], actions)
        elif "margin" in parts:
            number = reader.place(parts["number"])
            if number is None:
                raise lines.fail(f"no rule compares {parts['number']!r}.")
            margins[number] = float(parts["margin"])
        elif "sample_time" in parts:
            fields["sample_time"] = float(parts["sample_time"])
        else:
            raise lines.expected("a line such as 'A sample every 0.5 s.', or the end")
        lines.advance()
    return {**fields, "hysteresis": tuple(margins.get(j, 0.0) for j in range(reader.width))}
