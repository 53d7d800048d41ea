"""Standardise observations and actions into the cube, and back."""

from spaql.spaces.actions import StandardActions
from spaql.spaces.describe import describe_space, space_from
from spaql.spaces.names import action_names, count_actions, observation_names
from spaql.spaces.recipes import numbers_recipe
from spaql.spaces.states import StandardStates, unbounded

__all__ = [
    "StandardActions",
    "StandardStates",
    "action_names",
    "count_actions",
    "describe_space",
    "numbers_recipe",
    "observation_names",
    "space_from",
    "unbounded",
]
