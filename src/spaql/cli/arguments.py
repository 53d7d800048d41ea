"""Arguments that several commands share, with their completion and suggestions for misspelt names."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from spaql.cli.report import PATH, read_numbers, say
from spaql.errors import ChangedPlantWarning, SettingError, nearest

if TYPE_CHECKING:
    from spaql.agents import Agent, Design
    from spaql.controllers import Controller


class Choice(click.Choice[str]):
    """A choice whose error names the nearest value."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value if it is one of the choices."""
        if value not in self.choices:
            self.fail(f"{value!r} is not a valid choice: {nearest(value, self.choices)}", param, ctx)
        return super().convert(value, param, ctx)


def existing_run(run: Path) -> Path:
    """Return the path of a run folder or file; refuse any other, suggesting the run probably meant."""
    from spaql.agents.agent_file import MODEL_FILE

    if run.is_file() or (run / MODEL_FILE).exists():
        return run
    wrong = f"{run} is not a run folder" if run.is_dir() else f"{run} does not exist"
    base = next(folder for folder in (run, *run.parents) if folder.is_dir())
    runs = [str(file.parent) for depth in _DEPTHS for file in base.glob(f"{depth}/{MODEL_FILE}")]
    known = sorted(runs + [str(file) for file in base.glob("*.spaql")])
    if not known:
        raise SettingError(f"{wrong}: give a folder written by `spaql train`, or a model file.")
    more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    listed = f"known runs are {', '.join(known[:_LISTED])}{more}."
    guess = nearest(str(run), known)
    raise SettingError(f"{wrong}: {guess if guess.endswith('?') and not run.is_dir() else listed}")


_DEPTHS = ("*", "*/*", "*/*/*")
"""Depths at which runs are searched for, down to ENV/ALGO/seed=SEED."""
_LISTED = 10


def _import_algorithm(ctx: click.Context, param: click.Parameter, algorithm: str | None) -> None:
    """Import the module of an algorithm that the user names; what a file names is never imported."""
    if algorithm is not None:
        from spaql.agents import agent_type

        agent_type(algorithm)


algorithm_option = click.option(
    "--import",
    "imported",
    metavar="MODULE:NAME",
    expose_value=False,
    is_eager=True,
    callback=_import_algorithm,
    help="import your own algorithm, with which the run was trained",
)


def run_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument RUN, a run folder or a model file, to a command, with the options for reading it."""
    params: list[click.Parameter] = vars(algorithm_option(command))["__click_params__"]
    params.insert(0, params.pop())  # click stores them in reverse: this option is listed last
    return click.argument("run", type=PATH, callback=lambda _, __, run: existing_run(run))(command)


def refuse_occupied(folder: Path) -> None:
    """Refuse an output folder that is a file or is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SettingError(f"{folder} already exists: choose another folder with --out, or remove it.")


number_option = click.option("--number", type=Choice(["double", "float"]), help="number format of the target")
quiet_option = click.option("--quiet", is_flag=True, help="do not show progress")


def read(run: Path) -> Agent | Design:
    """Return the agent or controller of a run; show a warning if its plant has changed."""
    source, messages = _read(run)
    for message in messages:
        say(f"Warning: {message}", err=True)
    return source


def _read(run: Path) -> tuple[Agent | Design, list[str]]:
    from spaql.agents import load

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ChangedPlantWarning)
        source = load(run)
    return source, list(dict.fromkeys(str(warning.message) for warning in caught))


def read_to_play(run: Path) -> Agent | Design:
    """Return an agent or controller to be run, after importing the module that its environment names."""
    from spaql.problems import check_environment
    from spaql.problems.registry import file_option

    source, _ = _read(run)
    env = source.problem.env
    if env is not None and ":" in env and file_option(env) is None:  # which has no equations
        check_environment(env)
    return read(run)


def made_by(source: Agent | Design) -> str:
    """Return the name of the algorithm, or `controller`."""
    from spaql.agents import Agent

    return source.learner_type.name if isinstance(source, Agent) else "controller"


def read_action(tree: Controller, text: str) -> int | str | list[float]:
    """Return an action given on the command line: the index or name of a discrete action, or components."""
    from gymnasium.spaces import Box

    if isinstance(tree.action_space, Box):
        return read_numbers(text)
    return int(text) if text.isdecimal() else text


class ChoiceOrOwn(Choice):
    """A choice, or MODULE:NAME for the user's own, whose module is imported."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value if it is one of the choices or MODULE:NAME."""
        return value if ":" in value else super().convert(value, param, ctx)


def complete_environment(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the environments whose names start with the text, the paper's setups first."""
    from spaql.problems import PRESETS, environment_names

    return [
        CompletionItem(name, help=PRESETS[name].summary if name in PRESETS else None)
        for name in environment_names()
        if name.lower().startswith(incomplete.lower())
    ]


def parse_methods(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str] | None:
    """Return the names of classical controllers; refuse unknown names before anything is run."""
    from spaql.classical import METHODS

    if value is None:
        return None
    methods = [name.strip() for name in value.split(",") if name.strip()]
    for method in methods:
        if method not in METHODS:
            raise click.BadParameter(f"there is no controller {method!r}: {nearest(method, METHODS)}")
    return methods
