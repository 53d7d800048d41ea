"""Readable controllers from a simulator."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spaql.registration import register_plants

if TYPE_CHECKING:
    __version__: str
    from spaql import (
        agents,
        algorithms,
        checks,
        classical,
        controllers,
        evaluation,
        export,
        figures,
        learned_plants,
        partition,
        plugins,
        problems,
        simulate,
        spaces,
        stats,
        zoo,
    )
    from spaql.agents import (
        AQL,
        SPAQL,
        SPAQLTS,
        Agent,
        Design,
        Fitted,
        History,
        PlanTree,
        TreeSearch,
        distil,
        fit,
        load,
    )
    from spaql.algorithms import Learner, PartitionLearner, Settings
    from spaql.checks import CheckReport, check_agent, check_problem
    from spaql.controllers import Controller, PartitionPolicy, Policy, RandomPolicy, controller_of, rules
    from spaql.errors import (
        ArchiveError,
        BadEnvironmentError,
        ContradictedProofError,
        MissingExtraError,
        SettingError,
        SpaqlError,
        UnsupportedSpaceError,
    )
    from spaql.evaluation import Evaluation, evaluate
    from spaql.partition import Partition
    from spaql.plugins.hardware import Hardware
    from spaql.plugins.sweeps.run import Run
    from spaql.plugins.sweeps.study import grid, read_study
    from spaql.plugins.sweeps.sweeps import Summary, sweep
    from spaql.plugins.sweeps.table import Results, results
    from spaql.problems import Dynamics, Problem, make_problem
    from spaql.verify import verify

__all__ = [
    "AQL",
    "SPAQL",
    "SPAQLTS",
    "Agent",
    "ArchiveError",
    "BadEnvironmentError",
    "CheckReport",
    "ContradictedProofError",
    "Controller",
    "Design",
    "Dynamics",
    "Evaluation",
    "Fitted",
    "Hardware",
    "History",
    "Learner",
    "MissingExtraError",
    "Partition",
    "PartitionLearner",
    "PartitionPolicy",
    "PlanTree",
    "Policy",
    "Problem",
    "RandomPolicy",
    "Results",
    "Run",
    "SettingError",
    "Settings",
    "SpaqlError",
    "Summary",
    "TreeSearch",
    "UnsupportedSpaceError",
    "__version__",
    "agents",
    "algorithms",
    "check_agent",
    "check_problem",
    "checks",
    "classical",
    "controller_of",
    "controllers",
    "distil",
    "evaluate",
    "evaluation",
    "export",
    "figures",
    "fit",
    "grid",
    "learned_plants",
    "load",
    "make_problem",
    "partition",
    "plugins",
    "problems",
    "read_study",
    "results",
    "rules",
    "simulate",
    "spaces",
    "stats",
    "sweep",
    "verify",
    "zoo",
]

_HOMES = {
    "spaql.agents": (
        "AQL",
        "SPAQL",
        "SPAQLTS",
        "Agent",
        "Design",
        "Fitted",
        "History",
        "PlanTree",
        "TreeSearch",
        "distil",
        "fit",
        "load",
    ),
    "spaql.algorithms": ("Learner", "PartitionLearner", "Settings"),
    "spaql.checks": ("CheckReport", "check_agent", "check_problem"),
    "spaql.controllers": (
        "Controller",
        "PartitionPolicy",
        "Policy",
        "RandomPolicy",
        "controller_of",
        "rules",
    ),
    "spaql.errors": (
        "ArchiveError",
        "BadEnvironmentError",
        "ContradictedProofError",
        "MissingExtraError",
        "SettingError",
        "SpaqlError",
        "UnsupportedSpaceError",
    ),
    "spaql.evaluation": ("Evaluation", "evaluate"),
    "spaql.plugins.sweeps.run": ("Run",),
    "spaql.plugins.sweeps.study": ("grid", "read_study"),
    "spaql.plugins.sweeps.sweeps": ("Summary", "sweep"),
    "spaql.plugins.sweeps.table": ("Results", "results"),
    "spaql.partition": ("Partition",),
    "spaql.problems": ("Dynamics", "Problem", "make_problem"),
    "spaql.plugins.hardware": ("Hardware",),
}
_MODULES = {
    "agents",
    "algorithms",
    "checks",
    "classical",
    "controllers",
    "evaluation",
    "export",
    "figures",
    "learned_plants",
    "partition",
    "plugins",
    "problems",
    "simulate",
    "spaces",
    "stats",
    "verify",
    "zoo",
}
"""The documented submodules, which are attributes after `import spaql`; each is imported on first use."""
_READ_FILES = {"spaql.export", "spaql.controllers", "spaql.verify"}
"""Those that take the path of a file, which agents read, and do not import agents themselves."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a name on first use, so that importing the package, and the command line's help, are quick."""
    if name == "__version__":
        value: Any = import_module("importlib.metadata").version("spaql")
    elif name in _MODULES or name in _HOME_OF:
        home = _HOME_OF.get(name, f"spaql.{name}")
        try:
            module = import_module(home)
        except ModuleNotFoundError as error:
            if not home.startswith("spaql.plugins.") or not f"{home}.".startswith(f"{error.name}."):
                raise
            raise AttributeError(
                f"spaql.{name} needs the plugin {error.name}, which is not installed."
            ) from None
        value = module if name in _MODULES else getattr(module, name)
        if home in _READ_FILES:
            import_module("spaql.agents")
    else:
        raise AttributeError(f"module 'spaql' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


register_plants()
