"""Declared features as arrays for the kernels, as text, and as data of files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spaql.controllers.features import FEATURES, Feature, LastAction, Observed, SinceChange
from spaql.errors import SettingError
from spaql.kernels.controller import FIRST, KIND, LAST, OBSERVED, PARAMETER, SAMPLES, SECOND, SLOT
from spaql.kernels.numerics import Floats, Ints
from spaql.spaces import given_names, split_unit


class FeatureTable(NamedTuple):
    """The features of a controller, as the kernel reads them."""

    columns: Ints
    """The place of each feature in x; an observed feature is the observation itself."""
    rows: Ints
    """As `Arrays.feature`: those that are computed."""
    settings: Floats
    """As `Arrays.setting`."""
    memory: int
    """Length of a memory."""


def feature_table(
    features: Sequence[Feature],
    observations: Sequence[str],
    actions: Sequence[str],
    sample_time: float,
    start: Sequence[float],
) -> FeatureTable:
    """Return features as a table.

    Parameters
    ----------
    features
        In the order in which they are computed.
    observations, actions
        The names of the components of an observation and of an action.
    sample_time
        Seconds between samples.
    start
        What counts as the last action at a reset.

    Examples
    --------
    >>> from spaql.controllers.features import Error, Integral
    >>> declared = [Error("error", "set-point", "level"), Integral("integral", "error", limit=10.0)]
    >>> table = feature_table(declared, ["level [m]", "set-point [m]"], ["pump [V]"], 0.5, [0.0])
    >>> table.rows[:, FIRST].tolist(), table.memory
    ([1, 2], 5)
    """
    columns: list[int] = []
    rows: list[list[int]] = []
    settings: list[list[float]] = []
    used = LAST + 2 * len(actions)
    for i, feature in enumerate(features):
        places = _sources(feature, features[:i], observations, actions)
        if not isinstance(feature, LastAction | SinceChange):
            places = [columns[place] if place >= 0 else -1 - place for place in places]
        if feature.kind == OBSERVED:
            columns.append(places[0])
            continue
        numbers = feature.numbers(sample_time)
        if isinstance(feature, LastAction):
            numbers[PARAMETER] = start[places[0]]
        columns.append(len(observations) + len(rows))
        entries = {KIND: feature.kind, FIRST: places[0], SECOND: places[-1]}
        entries |= {SAMPLES: getattr(feature, "samples", 0), SLOT: used}
        rows.append([entries[column] for column in range(5)])
        settings.append([numbers.get(column, 0.0) for column in range(3)])
        used += feature.memory()
    return FeatureTable(
        np.array(columns, np.int64),
        np.array(rows, np.int64).reshape(-1, 5),
        np.array(settings).reshape(-1, 3),
        used,
    )


def feature_names(
    features: Sequence[Feature], observations: Sequence[str], actions: Sequence[str]
) -> tuple[str, ...]:
    """Return the names of features with their units; raises if the declaration is not sound.

    Examples
    --------
    >>> from spaql.controllers.features import Difference
    >>> feature_names([Difference("change", "level")], ["level [m]"], ["pump"])
    ('change [m]',)
    """
    names: list[str] = []
    for i, feature in enumerate(features):
        if type(feature) not in FEATURES.values():  # the kernels know no other
            raise SettingError(f"There is no feature of the kind {type(feature).__name__}.")
        sources = _sources(feature, features[:i], observations, actions)
        if isinstance(feature, LastAction | SinceChange):
            units = [split_unit(actions[sources[0]])[1]]
        else:
            units = [split_unit(names[j] if j >= 0 else observations[-1 - j])[1] for j in sources]
        unit = feature.unit or feature.default_unit(*units)
        names.append(f"{feature.name} [{unit}]" if unit else feature.name)
    given_names("features", names, len(names))
    return tuple(names)


def formulas(
    features: Sequence[Feature], observations: Sequence[str], actions: Sequence[str], sample_time: float
) -> Iterator[str]:
    """Yield a line for each feature: its name, its unit and how it is computed."""
    names = feature_names(features, observations, actions)
    for feature, name in zip(features, names, strict=True):
        yield f"{name} = {feature.formula(sample_time)}"


def with_sources(used: Iterable[int], features: Sequence[Feature]) -> list[int]:
    """Return the places of some features, and of those that they are computed from."""
    names = [feature.name for feature in features]
    needed = set(used)
    for j in range(len(names) - 1, -1, -1):
        feature = features[j]
        if j in needed and not isinstance(feature, Observed | LastAction | SinceChange):
            sources = [getattr(feature, source) for source in feature.sources]
            needed |= {names.index(name) for name in sources if name in names[:j]}
    return sorted(needed)


def feature_to(feature: Feature) -> dict[str, Any]:
    """Return a feature as plain data, for files."""
    kind = next(name for name, feature_class in FEATURES.items() if type(feature) is feature_class)
    return {"kind": kind, **dataclasses.asdict(feature)}


def feature_from(data: Any) -> Feature:
    """Return the feature of plain data; raises for anything else."""
    fields = dict(data)
    feature_class = FEATURES.get(fields.pop("kind"))
    if feature_class is None:
        raise SettingError(f"There is no feature of the kind {data['kind']!r}: it is of a later version.")
    for field in dataclasses.fields(feature_class):
        if field.type == "str" and field.name in fields and not isinstance(fields[field.name], str):
            raise SettingError(f"{field.name} of a feature is {fields[field.name]!r}, and must be a text.")
    return feature_class(**fields)


def _sources(
    feature: Feature, before: Sequence[Feature], observations: Sequence[str], actions: Sequence[str]
) -> list[int]:
    """Return where the kernels find what a feature is computed from."""
    if isinstance(feature, LastAction | SinceChange):
        return [_find(feature, feature.of, actions, "action")]
    places = []
    for field in feature.sources:
        name = getattr(feature, field)
        known = [earlier.name for earlier in before]
        if name in known and not isinstance(feature, Observed):
            places.append(known.index(name))
        else:
            places.append(-1 - _find(feature, name, observations, "observation or earlier feature"))
    clash = feature.name in {split_unit(name)[0] for name in observations}
    if clash and not (isinstance(feature, Observed) and split_unit(feature.of)[0] == feature.name):
        raise SettingError(f"The feature {feature.name!r} has the name of an observation: give it another.")
    return places


def _find(feature: Feature, name: str, names: Sequence[str], what: str) -> int:
    places = [i for i, known in enumerate(names) if name in (known, split_unit(known)[0])]
    if len(places) != 1:
        listed = ", ".join(names)
        raise SettingError(
            f"The feature {feature.name!r} uses {name!r}, which is no {what}: there is {listed}."
        )
    return places[0]
