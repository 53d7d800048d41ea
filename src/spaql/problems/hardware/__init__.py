"""Plants on the bench: `Hardware` is one of them, `SimulatedBoard` the other side, for tests."""

from spaql.problems.hardware.counts import Counts
from spaql.problems.hardware.environment import Hardware
from spaql.problems.hardware.simulated import SimulatedBoard

__all__ = ["Counts", "Hardware", "SimulatedBoard"]
