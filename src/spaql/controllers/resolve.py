"""What functions accept as a policy: the policy itself, an agent or controller, or the path of its file."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol

from spaql.controllers.policy import Policy
from spaql.errors import SettingError


class HasPolicy(Protocol):
    """An agent, a controller, or anything else with a policy."""

    @property
    def policy(self) -> Policy:
        """The policy to use."""


PathLike = str | os.PathLike[str]
Source = Policy | HasPolicy | PathLike
"""A policy, such as a controller; an agent or design; or the path of a run folder or agent file."""


_readers: list[Callable[[PathLike], Any]] = []


def register_reader(read: Callable[[PathLike], Any]) -> None:
    """Register the function that reads files; it belongs to the agents, a layer above."""
    _readers[:] = [read]


def opened(source: Any) -> Any:
    """Return what a run folder or file holds, given by its path; anything else is returned as it is."""
    if not isinstance(source, str | os.PathLike):
        return source
    if not _readers:
        raise SettingError("To read a file, import spaql.agents first, or use spaql.load.")
    content = _readers[0](source)
    if not hasattr(type(content), "policy"):
        raise SettingError(f"{os.fspath(source)} holds a {type(content).__name__}, which is not a policy.")
    return content


def policy_of(source: Source) -> Policy:
    """Return the policy of what a function was given.

    An agent whose training was stopped makes its policy first (see `spaql.Agent.conclude`).

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("cartpole200", seed=0)
    >>> policy_of(agent) is agent.policy is policy_of(agent.policy)
    True
    """
    owner = opened(source)
    if isinstance(owner, Policy):
        return owner
    conclude = getattr(owner, "conclude", None)
    policy = owner.policy if conclude is None else conclude()
    if not isinstance(policy, Policy):
        raise SettingError(f"{type(owner).__name__} has no policy of spaql: {type(policy).__name__} is none.")
    return policy
