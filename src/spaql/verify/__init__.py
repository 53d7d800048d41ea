"""Statements about closed loops: proven, refuted or undecided.

`spaql.verify(...)` calls the function `verify` in this package.
"""

import sys
from types import ModuleType
from typing import Any

from spaql.problems.tapes import trace_observe, trace_step
from spaql.program.tape import Tape
from spaql.verify.replay import Counterexample
from spaql.verify.run import verify
from spaql.verify.statement import Statement, default_statement
from spaql.verify.verdict import Verdict

__all__ = [
    "Counterexample",
    "Statement",
    "Tape",
    "Verdict",
    "default_statement",
    "trace_observe",
    "trace_step",
    "verify",
]


class _CallableModule(ModuleType):
    """The package of this name, which is called as the function in it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Verdict:
        return verify(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
