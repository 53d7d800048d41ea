import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

# SDL is pulled in by Gymnasium's renderers; no test opens a window.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

# How long an example takes says more of the machine, and of what is compiled, than of the code.
settings.register_profile("spaql", deadline=None)
settings.load_profile("spaql")


@pytest.fixture
def untraced() -> Iterator[None]:
    """Take no coverage, which doubles the time of some tests; pytest-cov's own mark fails in xdist."""
    tracer = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(tracer)
