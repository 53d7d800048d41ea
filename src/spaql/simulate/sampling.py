"""The time between samples, which a controller with memory must share with the plant."""

from __future__ import annotations

from spaql.controllers import Policy
from spaql.errors import SettingError
from spaql.problems import Problem


def check_sample_time(policy: Policy, problem: Problem) -> None:
    """Refuse a controller that samples at another rate than the plant, if both are known."""
    own = policy.sample_time
    if own is not None and problem.sample_time is not None and own != problem.sample_time:
        raise SettingError(
            f"The controller takes a sample every {own:g} s, and {problem.name} makes a step every "
            f"{problem.sample_time:g} s."
        )
