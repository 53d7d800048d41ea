"""Readable controllers from a simulator."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spaql.registration import register_plants

if TYPE_CHECKING:
    __version__: str
    # isort: off
    from spaql import (
        agents as agents,
        algorithms as algorithms,
        checks as checks,
        classical as classical,
        controllers,
        evaluation,
        export,
        figures,
        learned_plants as learned_plants,
        partition as partition,
        plugins as plugins,
        problems as problems,
        simulate as simulate,
        spaces as spaces,
        stats as stats,
        zoo,
    )
    from spaql.agents import (
        AQL,
        SPAQL,
        SPAQLTS,
        Agent as Agent,
        Design as Design,
        Fitted as Fitted,
        History as History,
        PlanTree,
        TreeSearch,
        distil,
        fit,
        load,
    )
    from spaql.algorithms import (
        Learner as Learner,
        PartitionLearner as PartitionLearner,
        Settings as Settings,
    )
    from spaql.checks import CheckReport as CheckReport, check_agent as check_agent, check_problem
    from spaql.controllers import (
        Controller,
        PartitionPolicy as PartitionPolicy,
        Policy as Policy,
        RandomPolicy as RandomPolicy,
        controller_of,
        rules,
    )
    from spaql.errors import (
        ArchiveError as ArchiveError,
        BadEnvironmentError as BadEnvironmentError,
        ContradictedProofError as ContradictedProofError,
        MissingExtraError as MissingExtraError,
        NotTrainedError as NotTrainedError,
        SettingError as SettingError,
        SpaqlError as SpaqlError,
        UnsupportedSpaceError as UnsupportedSpaceError,
    )
    from spaql.evaluation import Evaluation as Evaluation, evaluate
    from spaql.partition import Partition as Partition
    from spaql.plugins.hardware import Hardware as Hardware
    from spaql.plugins.sweeps.run import Run as Run
    from spaql.plugins.sweeps.study import grid as grid, read_study as read_study
    from spaql.plugins.sweeps.sweeps import Summary as Summary, sweep
    from spaql.plugins.sweeps.table import Results as Results, results as results
    from spaql.problems import Dynamics, Problem as Problem, make_problem
    from spaql.verify import verify
    # isort: on


__all__ = [
    "AQL",
    "SPAQL",
    "SPAQLTS",
    "Controller",
    "Dynamics",
    "PlanTree",
    "TreeSearch",
    "__version__",
    "check_problem",
    "controller_of",
    "controllers",
    "distil",
    "evaluate",
    "evaluation",
    "export",
    "figures",
    "fit",
    "load",
    "make_problem",
    "rules",
    "sweep",
    "verify",
    "zoo",
]
"""What a user types first; all other names are found as well (`_HOMES`, `_MODULES`)."""

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
        "NotTrainedError",
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
