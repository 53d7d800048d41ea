"""Every night tests try five times as much: `.ci/run --all` sets SPAQL_NIGHTLY."""

import os


def thorough(n: int) -> int:
    """Return how often to try: a fifth by day."""
    return n if os.environ.get("SPAQL_NIGHTLY") else max(1, n // 5)
