"""Records as JSON: frozen dataclasses of numbers, texts and tuples, and back."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, get_args, get_origin, get_type_hints

from spaql.languages import in_figure
from spaql.values import with_null


def to_json(kind: str, record: Any) -> str:
    """Return a record as JSON, with every number in full precision, in the order of its fields.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True)
    ... class Dot:
    ...     x: float
    >>> to_json("dot", Dot(0.1))
    '{\\n "kind": "dot",\\n "x": 0.1\\n}\\n'
    """
    data = {"kind": kind, **with_null(dataclasses.asdict(record))}
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def from_data(hint: Any, data: Any) -> Any:
    """Return a record of this type from decoded JSON."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint)
        return hint(**{f.name: from_data(hints[f.name], data[f.name]) for f in dataclasses.fields(hint)})
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        return tuple(from_data(item, value) for value in data)
    if hint is float and data is None:
        return math.nan
    return data


def with_plain_text(record: Any) -> Any:
    """Return a record whose texts are drawn as they are: none is read as a formula.

    Examples
    --------
    >>> with_plain_text((1.5, ("a $b$",)))
    (1.5, ('a \\\\$b\\\\$',))
    """
    if isinstance(record, str):
        return in_figure(record)
    if isinstance(record, tuple):
        return tuple(map(with_plain_text, record))
    if not dataclasses.is_dataclass(record) or isinstance(record, type):
        return record
    fields = (field.name for field in dataclasses.fields(record))
    return dataclasses.replace(record, **{name: with_plain_text(getattr(record, name)) for name in fields})
