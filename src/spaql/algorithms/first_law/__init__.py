"""A first law: regulators of an affine model that is fitted to random steps."""

from spaql.algorithms.first_law.laws import first_laws, is_affine
from spaql.algorithms.first_law.rounds import FirstLaw

__all__ = ["FirstLaw", "first_laws", "is_affine"]
