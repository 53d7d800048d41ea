"""Plants on the bench."""

from spaql.problems.hardware.counts import Counts
from spaql.problems.hardware.environment import Hardware

__all__ = ["Counts", "Hardware"]
