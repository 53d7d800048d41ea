"""Controllers of the textbook, to stand beside a learned one: PID and LQR, tuned on the same simulator."""

from spaql.classical.linear import LinearPlant, OperatingPoint, linearise, operating_point
from spaql.classical.policies import LQRPolicy, PIDPolicy, SwingUpPolicy, falling_rate, has_pole, pole_of
from spaql.classical.search import Tuned
from spaql.classical.tuning import METHODS, augmented, riccati_gains, tune

__all__ = [
    "METHODS",
    "LQRPolicy",
    "LinearPlant",
    "OperatingPoint",
    "PIDPolicy",
    "SwingUpPolicy",
    "Tuned",
    "augmented",
    "falling_rate",
    "has_pole",
    "linearise",
    "operating_point",
    "pole_of",
    "riccati_gains",
    "tune",
]
