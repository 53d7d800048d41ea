"""Callbacks, which are called after every iteration of a training."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from spaql.errors import SettingError

if TYPE_CHECKING:
    from spaql.agents.agent import Agent

Callback = Callable[["Agent", dict[str, float]], bool | None]
_WANTED = (
    "must be a function of the agent and the new row of its history, such as "
    "`lambda agent, row: row['training_steps'] < 5000`, or a list of such functions"
)


def joined(callback: Callback | Sequence[Callback] | None) -> Callback:
    """Return a function that calls all the callbacks, and returns False if one of them does.

    Raises `SettingError` for anything that cannot be called like this, such as a Stable-Baselines3 callback.
    """
    callbacks: Sequence[Any] = callback if isinstance(callback, list | tuple) else [callback]
    functions = [_checked(function) for function in callbacks if function is not None]

    def call(agent: Agent, row: dict[str, float]) -> bool:
        answers = [function(agent, row) for function in functions]
        return not any(answer is False for answer in answers)

    return call


def _checked(callback: Any) -> Callback:
    if any(base.__name__ == "BaseCallback" for base in type(callback).__mro__):
        raise SettingError(
            f"callback is Stable-Baselines3's {type(callback).__name__}, made for models of that library: it "
            f"{_WANTED}."
        )
    if isinstance(callback, type) or not callable(callback):
        raise SettingError(f"callback is {callback!r}, and {_WANTED}.")
    try:
        inspect.signature(callback).bind(None, None)
    except TypeError:
        raise SettingError(
            f"callback is {callback!r}, which does not take two arguments: it {_WANTED}."
        ) from None
    except ValueError:  # a builtin without a signature
        pass
    return callback  # type: ignore[no-any-return]
