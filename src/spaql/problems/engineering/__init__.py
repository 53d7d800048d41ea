"""Plants of control engineering: thirteen, of which two are the quadruple tank, with other set-points.

Units, ranges, set-points and sample times are declared with each plant; numbers of the equations are its
parameters. Equations are integrated with a fixed number of steps within a sample.
"""

from spaql.problems.engineering import electrical, motion, poles, process

__all__ = ["electrical", "motion", "poles", "process"]
