"""Standardise observations and actions into the cube, and back."""

from spaql.spaces.actions import StandardActions
from spaql.spaces.describe import describe_space, space_from
from spaql.spaces.states import StandardStates, unbounded

__all__ = ["StandardActions", "StandardStates", "describe_space", "space_from", "unbounded"]
