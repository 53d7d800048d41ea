"""What is asked of an algorithm, whoever wrote it."""

from __future__ import annotations

from spaql.agents import Agent
from spaql.checks.acting import ACTING
from spaql.checks.agent_case import AgentCase
from spaql.checks.learning import LEARNING
from spaql.checks.report import Check, CheckReport, run_all
from spaql.checks.saving import SAVING
from spaql.problems import EnvironmentLike

AGENT_CHECKS: tuple[Check[AgentCase], ...] = tuple(Check(f) for f in (*ACTING, *SAVING, *LEARNING))


def check_agent(agent: type[Agent] | Agent, env: EnvironmentLike = "cartpole200") -> CheckReport:
    """Try whether an algorithm keeps what its users rely on.

    It is trained anew, for a few iterations at a time, some twenty times.

    Parameters
    ----------
    agent
        A kind of agent, or an agent, whose settings and problem are then used; it is left as it is.
    env
        What to try a kind of agent on.

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
