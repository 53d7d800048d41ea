"""Checks of a user's own algorithm, environment or plant."""

from spaql.checks.agents import AGENT_CHECKS, AgentCase, check_agent
from spaql.checks.problems import PROBLEM_CHECKS, ProblemCase, check_problem
from spaql.checks.report import CheckReport, CheckResult, Requirement

__all__ = [
    "AGENT_CHECKS",
    "PROBLEM_CHECKS",
    "AgentCase",
    "CheckReport",
    "CheckResult",
    "ProblemCase",
    "Requirement",
    "check_agent",
    "check_problem",
]
