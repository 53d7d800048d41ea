"""Maps of observations and actions into the standard cube, and back."""

from spaql.spaces.actions import StandardActions, environment_actions
from spaql.spaces.names import (
    action_names,
    check_names,
    count_actions,
    describe_space,
    find_observation,
    given_names,
    identifier,
    observation_names,
    space_from,
    split_unit,
    stored_names,
)
from spaql.spaces.states import StandardStates, numbers_recipe, space_bounds, unbounded

__all__ = [
    "StandardActions",
    "StandardStates",
    "action_names",
    "check_names",
    "count_actions",
    "describe_space",
    "environment_actions",
    "find_observation",
    "given_names",
    "identifier",
    "numbers_recipe",
    "observation_names",
    "space_bounds",
    "space_from",
    "split_unit",
    "stored_names",
    "unbounded",
]
