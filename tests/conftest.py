import os
import sys
from collections.abc import Iterator

import pytest

# SDL is pulled in by Gymnasium's renderers; no test opens a window.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")


@pytest.fixture
def untraced() -> Iterator[None]:
    """Take no coverage, which doubles the time of some tests; pytest-cov's own mark fails in xdist."""
    tracer = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(tracer)
