import gc
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from nightly import thorough
from spaql.errors import SpaqlError

# SDL is pulled in by Gymnasium's renderers; no test opens a window.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

# A worker of xdist has the width of a terminal, to which commands would fit their tables.
os.environ.pop("COLUMNS", None)

# How long an example takes says more of the machine, and of what is compiled, than of the code.
settings.register_profile("spaql", deadline=None, max_examples=thorough(150))
settings.load_profile("spaql")


@pytest.fixture
def untraced() -> Iterator[None]:
    """Take no coverage, which doubles the time of some tests; pytest-cov's own mark fails in xdist."""
    tracer = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(tracer)


def _listed(file: str) -> frozenset[str]:
    return frozenset(Path(__file__).with_name(file).read_text(encoding="utf-8").splitlines())


_SLOW, _LONG = _listed("slow.txt"), _listed("long.txt")
"""Functions slower than a quarter of a second, and cases left to the night; `list_slow.py` writes both."""

_WANTING = re.compile(r"needs |not installed|could not import|there is no ")
"""Of the reason of a skip: something could have been installed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-missing-tools", action="store_true", help="a test that lacks a tool fails")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # Times were taken of compiled kernels.
        if os.environ.get("NUMBA_DISABLE_JIT") != "1" and item.nodeid.partition("[")[0] in _SLOW:
            item.add_marker("slow")
        if item.nodeid in _LONG:
            item.add_marker("long")


def pytest_collection_finish() -> None:
    """Leave what is there from now on out of garbage collections, which look at all of it again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Skip a test of a target whose compiler or interpreter is missing."""
    outcome = yield
    raised = outcome.excinfo[1] if outcome.excinfo else None
    if isinstance(raised, OSError) and isinstance(raised, SpaqlError):  # MissingToolError
        outcome.force_exception(pytest.skip.Exception(str(raised)))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    _refuse_missing_tools(item.config, outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    outcome = yield
    _refuse_missing_tools(collector.config, outcome.get_result())


def _refuse_missing_tools(config: pytest.Config, report: pytest.TestReport | pytest.CollectReport) -> None:
    """Let CI fail where a test was skipped because a compiler or a library is missing."""
    if config.getoption("--no-missing-tools") and report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if _WANTING.search(reason) and not hasattr(report, "wasxfail"):
            report.outcome = "failed"
            report.longrepr = f"{report.nodeid} was skipped, and CI has all tools: {reason}"
