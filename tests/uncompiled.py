"""How many examples a property tries: a third by day, and a tenth with the JIT off.

Without it, kernels are a hundred times slower.
"""

import os

from spaql.kernels.jit import ENABLED


def examples(n: int) -> int:
    """Return how many of the examples of the night are tried."""
    if not ENABLED:
        return max(1, n // 10)
    return n if os.environ.get("SPAQL_NIGHTLY") else max(1, n // 3)
