"""Checks and their reports."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Generic, Literal, NoReturn, TypeVar

import numpy as np

from spaql.errors import SpaqlError
from spaql.problems.user_errors import describe_error

Case = TypeVar("Case")


class CheckFailedError(Exception):
    """A check failed; the message says how."""


class CheckSkippedError(Exception):
    """A check does not apply; the message says why."""


def fail(why: str) -> NoReturn:
    """Fail the current check."""
    raise CheckFailedError(why)


def skip(why: str) -> NoReturn:
    """Skip the current check."""
    raise CheckSkippedError(why)


@dataclass(frozen=True)
class Requirement(Generic[Case]):
    """A function that checks one requirement: its name and docstring state which."""

    function: Callable[[Case], None]
    needed: bool = False
    """Whether the checks after it are skipped if it fails."""

    @property
    def name(self) -> str:
        """The requirement in short."""
        return self.function.__name__.replace("_", " ")

    @property
    def promise(self) -> str:
        """The requirement."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    def run(self, case: Case) -> CheckResult:
        """Return the finding; any other error that the function raises is a failure too."""
        outcome: CheckOutcome = "passed"
        why = ""
        try:
            self.function(case)
        except CheckSkippedError as reason:
            outcome = "skipped"
            why = str(reason)
        except (CheckFailedError, SpaqlError) as reason:
            outcome = "failed"
            why = str(reason)
        except Exception as error:
            outcome = "failed"
            why = describe_error(error)
        return CheckResult(self.name, self.promise, outcome, why)


CheckOutcome = Literal["passed", "failed", "skipped"]
_LAST: tuple[CheckOutcome, ...] = ("passed", "skipped", "failed")
"""The order in which findings are printed: failures last."""


@dataclass(frozen=True)
class CheckResult:
    """The result of one check."""

    name: str
    promise: str
    outcome: CheckOutcome
    why: str = ""
    """Why it failed or was skipped."""


@dataclass(frozen=True)
class CheckReport:
    """The results of checks, in their order.

    Examples
    --------
    >>> report = CheckReport("a plant", (CheckResult("resets", "A reset begins an episode.", "passed"),))
    >>> bool(report), len(report.failed)
    (True, 0)
    """

    subject: str
    findings: tuple[CheckResult, ...]

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """The checks that failed."""
        return tuple(finding for finding in self.findings if finding.outcome == "failed")

    def __bool__(self) -> bool:
        return not self.failed

    def __getitem__(self, name: str) -> CheckResult:
        return next(finding for finding in self.findings if finding.name == name)

    def data(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON."""
        checks = [asdict(finding) for finding in self.findings]
        return {"subject": self.subject, "passed": bool(self), "checks": checks}

    def __str__(self) -> str:
        width = max(len(finding.name) for finding in self.findings)
        counts = dict.fromkeys(("passed", "failed", "skipped"), 0)
        lines = []
        for finding in sorted(self.findings, key=lambda result: _LAST.index(result.outcome)):
            counts[finding.outcome] += 1
            said = f"{finding.promise} {finding.why}".strip() if finding.outcome == "failed" else finding.why
            line = f"{finding.outcome:<7}  {finding.name:<{width}}  {said or finding.promise}"
            lines.append(line.rstrip())
        summary = ", ".join(f"{n} {outcome}" for outcome, n in counts.items() if n)
        return "\n".join([*lines, "", f"{self.subject}: {summary}"])


def run_all(subject: str, checks: Iterable[Requirement[Case]], case: Case) -> CheckReport:
    """Return the report of checks of one case; after a failure of a needed check the rest are skipped."""
    findings: list[CheckResult] = []
    missed = ""
    for check in checks:
        if missed:
            findings.append(CheckResult(check.name, check.promise, "skipped", f"First fix: {missed}."))
            continue
        findings.append(check.run(case))
        if check.needed and findings[-1].outcome == "failed":
            missed = check.name
    return CheckReport(subject, tuple(findings))


@contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """Seed the global random generators within a context."""
    python = random.getstate()
    numpy = np.random.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
