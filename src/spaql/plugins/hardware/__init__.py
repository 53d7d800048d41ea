"""Plants on the bench."""

from spaql.plugins.hardware.counts import Counts
from spaql.plugins.hardware.environment import Hardware

__all__ = ["Counts", "Hardware"]
