"""The checks of an algorithm."""

from __future__ import annotations

from spaql.agents import Agent
from spaql.checks.acting import ACTING
from spaql.checks.agent_case import AgentCase
from spaql.checks.learning import LEARNING
from spaql.checks.report import CheckReport, Requirement, run_all
from spaql.checks.saving import SAVING
from spaql.problems import EnvironmentLike

AGENT_CHECKS: tuple[Requirement[AgentCase], ...] = tuple(
    Requirement(f) for f in (*ACTING, *SAVING, *LEARNING)
)


def check_agent(agent: type[Agent] | Agent, env: EnvironmentLike = "cartpole200") -> CheckReport:
    """Return a report of checks of what users of an algorithm rely on.

    About twenty agents are trained, for a few iterations each.

    Parameters
    ----------
    agent
        A class of agents, or an agent whose settings and problem are used; it is not modified.
    env
        The problem for a class of agents.

    Examples
    --------
    >>> import spaql
    >>> report = check_agent(spaql.SPAQL)
    >>> bool(report), report["the same seed gives the same bytes"].outcome
    (True, 'passed')
    """
    kind = agent if isinstance(agent, type) else type(agent)
    with AgentCase.of(agent, env) as case:
        return run_all(f"{kind.__name__} on {case.problem.name}", AGENT_CHECKS, case)
