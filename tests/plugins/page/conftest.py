from collections.abc import Iterator

import pytest

from browser import Page, browser


@pytest.fixture(scope="session")
def page() -> Iterator[Page]:
    """One browser for all tests of a process, each of which opens its own page in it."""
    with browser() as opened:
        yield opened
