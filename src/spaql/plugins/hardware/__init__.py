"""Plants on the bench."""

from spaql.plugins.hardware.board import Counts
from spaql.plugins.hardware.environment import Hardware

__all__ = ["Counts", "Hardware"]
