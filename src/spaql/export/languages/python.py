"""A controller as one Python file without imports."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from spaql.export.language import Source, Target
from spaql.export.running import Player, driven_by_python, run_file
from spaql.export.syntax import Syntax
from spaql.languages import in_comment
from spaql.program.ir import Program


class Python(Target):
    """One file of plain Python, with a function, or a class for a controller with memory."""

    name = "Python"
    suffix = ".py"

    def text(self, source: Source) -> str:
        """Return the content of the file."""
        return "\n".join([docstring(source), *definitions(source, PythonSyntax)]) + "\n"

    def player(self, source: Source, folder: Path) -> Player:
        """Return the function that plays samples by the file, in an interpreter of its own."""
        state = [f", controller.{variable.name}" for variable in source.program.state]
        setup = [*run_file(source.name), "act = namespace.get('act')"]
        reset: list[str] = []
        if state:
            setup += ["controller = namespace['Controller']()", "act = controller.act"]
            reset = ["if row[0] > 0.0:", "    controller.reset()"]
        action = "act(row[1:])" if source.discrete else "*act(row[1:])"
        sample = [*reset, f"played.extend(({action}{''.join(state)},))"]
        return driven_by_python(setup, sample, folder, source.widths[0], source.played)

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"{platform.python_implementation()} {platform.python_version()}"


class PythonSyntax(Syntax):
    """Python; the variables of the state are attributes."""

    conjunction = "and"
    disjunction = "or"
    negation = "not ({})"
    truths = ("False", "True")
    assignment = "{} = {}"
    call = "{outputs}, = {part}({arguments})"
    comment = "# {}"
    opening = "if {}:"
    further = "elif {}:"
    otherwise = "else:"
    end = ""
    kept = "self.{}"

    def __init__(self, program: Program, integers: Collection[str]) -> None:
        """`integers` are numbers that are set to integers only."""
        super().__init__(program)
        self._integers = integers

    def assigned(self, name: str, value: str) -> str:
        """Return an assignment."""
        return super().assigned(name, value.removesuffix(".0") if name in self._integers else value)


Making = Callable[[Program, Collection[str]], PythonSyntax]


def docstring(source: Source) -> str:
    """Return the heading of a module."""
    return '"""' + "\n".join(map(in_comment, source.heading)) + '\n"""'


def definitions(source: Source, make: Making) -> Iterator[str]:
    """Yield the functions of a module, or the class of a controller with memory; `make` makes the syntax."""
    integers = source.program.outputs if source.discrete else ()
    for name, part in source.parts.items():
        syntax = make(part, integers)
        yield from ("", "", f"def {name}({', '.join(part.inputs)}):")
        yield from syntax.lines(part.statements, 1)
        yield f"    return ({', '.join(syntax.outputs)},)"
    syntax = make(source.program, integers)
    yield from ("", "")
    if not source.program.state:
        yield from _act(source, syntax)
        return
    yield from (
        "class Controller:",
        '    """The controller, with what it remembers; one for each plant."""',
        "",
    )
    yield f"    sample_time = {syntax.number(source.sample_time or 0.0)}"
    yield '    """Seconds between samples."""'
    yield from ("", "    def __init__(self):", "        self.reset()", "")
    yield from ("    def reset(self):", '        """Forget everything, before the first sample."""')
    for variable in source.program.state:
        yield f"        self.{variable.name} = {syntax.value(variable)}  # {in_comment(variable.note)}"
    yield ""
    yield from (f"    {line}".rstrip() for line in _act(source, syntax, "self, "))


def _act(source: Source, syntax: PythonSyntax, receiver: str = "") -> Iterator[str]:
    """Yield the lines of the function."""
    program = source.program
    yield from (f"def act({receiver}observation):", '    """Return the action for an observation.', "")
    yield from (f"    {in_comment(line)}" for line in source.notes())
    yield '    """'
    yield from (f"    {word} = float(observation[{j}])" for j, word in enumerate(program.inputs))
    yield from syntax.lines(program.statements, 1)
    action = f"({', '.join(syntax.outputs)},)"
    if source.discrete:
        action = f"int({syntax.outputs[0]})" if program.state else syntax.outputs[0]
    yield f"    return {action}"
