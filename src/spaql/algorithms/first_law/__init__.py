"""A first law: regulators of an affine model that is fitted to random steps."""

from spaql.algorithms.first_law.laws import first_laws
from spaql.algorithms.first_law.rounds import FirstLaw

__all__ = ["FirstLaw", "first_laws"]
