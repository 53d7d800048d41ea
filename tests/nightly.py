"""Every night tests try five times as much: `.ci/run --all` sets SPAQL_NIGHTLY.

So do properties that do not say how many examples they try: 30 by day, 150 every night.
"""

import os


def thorough(n: int) -> int:
    """Return how often to try: a fifth by day."""
    return n if os.environ.get("SPAQL_NIGHTLY") else max(1, n // 5)
