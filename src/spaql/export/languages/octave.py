"""A controller as a MATLAB function, run in Octave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from spaql.export.language import SLOW_POINTS, Source, Target
from spaql.export.running import PLAYED, SAMPLES, Player, driven, find_program, version_of
from spaql.export.syntax import Syntax
from spaql.languages import OCTAVE, in_comment
from spaql.program.ir import Program, State

_OCTAVE = "octave-cli"
_OPTIONS = ("--norc", "--no-history", "--no-line-editing", "--quiet")


class Octave(Target):
    """One file with a function, for Octave, MATLAB and MATLAB Function blocks of Simulink."""

    name = "MATLAB/Octave"
    suffix = ".m"
    points = SLOW_POINTS

    def text(self, source: Source) -> str:
        """Return the content of the file."""
        notes = source.notes("{}({})", first=1)
        lines = [f"% {in_comment(line)}".rstrip() for line in (*source.heading, "", *notes)]
        program = source.program
        syntax = OctaveSyntax(source.program)
        if program.state:
            head = f"function [action, state] = {source.name}(observation, state) %#codegen"
            lines += [f"% {in_comment(line)}".rstrip() for line in _state_notes(source)]
        else:
            head = f"function action = {source.name}(observation) %#codegen"
        lines = [head, *lines]
        lines += [
            f"    {word} = observation({j + 1});" for j, word in enumerate(syntax.plain(program.inputs))
        ]
        lines += _unpacked(program.state, syntax)
        lines += _body(program, syntax)
        lines += [f"    action = [{'; '.join(syntax.outputs)}];"]
        if program.state:
            lines += [f"    state = [{'; '.join(map(_number, program.state))}];"]
        lines += ["end"]
        for name, part in source.parts.items():
            other = OctaveSyntax(part)
            parameters = ", ".join(other.plain(part.inputs))
            head = f"function [{', '.join(other.outputs)}] = {name}({parameters})"
            lines += ["", head, *_body(part, other), "end"]
        return "\n".join(lines) + "\n"

    def player(self, source: Source, folder: Path) -> Player:
        """Return the function that plays samples by the file in a folder."""
        (folder / "play_samples.m").write_text(_driver(source), encoding="utf-8")
        return driven([find_program(_OCTAVE, self.name), *_OPTIONS, "play_samples.m"], folder, source.played)

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return version_of(_OCTAVE)


class OctaveSyntax(Syntax):
    """MATLAB as far as Octave has it; the variables of the state are unpacked first."""

    negation = "~({})"
    unequal = "~="
    in_leaf = "leaf == {}"
    comment = "% {}"
    opening = "if {}"
    further = "elseif {}"
    otherwise = "else"
    end = "end"
    reserved = f"{OCTAVE} action observation state"


def _state_notes(source: Source) -> Iterator[str]:
    syntax = OctaveSyntax(source.program)
    yield from ("", f"Call it every {source.sample_time:g} s, and pass on the state: [] is a reset.")
    yield from (f"state({j + 1})  {variable.note}" for j, variable in enumerate(source.program.state))
    yield "In a MATLAB Function block, whose sizes are fixed, start with the state after a reset:"
    yield f"[{'; '.join(syntax.number(variable.reset) for variable in source.program.state)}]"


def _unpacked(state: Sequence[State], syntax: OctaveSyntax) -> Iterator[str]:
    if not state:
        return
    yield "    if isempty(state)"
    yield f"        state = [{'; '.join(syntax.number(variable.reset) for variable in state)}];"
    yield "    end"
    for j, variable in enumerate(state):
        yield f"    {variable.name} = state({j + 1}){' ~= 0' if variable.kind == 'flag' else ''};"


def _number(variable: State) -> str:
    return f"double({variable.name})" if variable.kind == "flag" else variable.name


def _body(program: Program, syntax: OctaveSyntax) -> Iterator[str]:
    """Yield the statements; all variables have a value first, which code generation asks for."""
    yield from (f"    {word} = 0;" for word in syntax.plain([*program.outputs, *program.numbers]))
    yield from (f"    {word} = false;" for word in syntax.plain(program.flags))
    yield from syntax.lines(program.statements, 1)


def _driver(source: Source) -> str:
    n, m, kept = source.widths
    call = f"played(1:{m}, k) = {source.name}(rows(2:end, k));"
    if kept:
        call = f"""if rows(1, k) > 0
        state = [];
    end
    [action, state] = {source.name}(rows(2:end, k), state);
    played(:, k) = [action; state];"""
    return f"""file = fopen("{SAMPLES}", "r");
rows = fread(file, [{n + 1}, Inf], "double");
fclose(file);
played = zeros({m + kept}, columns(rows));
state = [];
for k = 1:columns(rows)
    {call}
end
file = fopen("{PLAYED}", "w");
fwrite(file, played, "double");
fclose(file);
"""
