"""How much tests try: all of it every night, when `.ci/run --all` sets SPAQL_NIGHTLY; a fifth by day.

So do properties that do not say how many examples they try: 30 by day, 150 every night. With the JIT off,
kernels are a hundred times slower.
"""

import os


def thorough(n: int) -> int:
    """Return how often to try: a fifth by day, and a tenth with the JIT off."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        return max(1, n // 10)
    return n if os.environ.get("SPAQL_NIGHTLY") else max(1, n // 5)
