"""Lua 5.3 and 5.4 as a target of `spaql export`: a module, run by the interpreter `lua5.4`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spaql.export.language import Source, Target
from spaql.export.running import PLAYED, SAMPLES, Player, driven, find_program, version_of
from spaql.export.syntax import Syntax
from spaql.languages import in_comment
from spaql.program.ir import Program


class Lua(Target):
    """One module without dependencies, whose numbers are doubles."""

    name = "Lua"
    suffix = ".lua"

    def text(self, source: Source) -> str:
        """Return the content of the file."""
        program = source.program
        notes = (*source.heading, "", *source.notes(first=1))
        lines = [f"-- {in_comment(line)}".rstrip() for line in notes]
        lines += ["", "local controller = {}"]
        for name, part in source.parts.items():
            syntax = LuaSyntax(part)
            lines += ["", f"local function {name}({', '.join(syntax.plain(part.inputs))})"]
            lines += [*body(part, syntax), f"    return {', '.join(syntax.outputs)}", "end"]
        syntax = LuaSyntax(program)
        if program.state:
            lines += ["", "-- Seconds between samples.", f"controller.sample_time = {source.sample_time!r}"]
            lines += ["", "-- Return what is remembered of a plant, before the first sample."]
            lines += ["function controller.reset()", "    return {"]
            lines += [f"        {x.name} = {syntax.value(x)}, -- {in_comment(x.note)}" for x in program.state]
            lines += ["    }", "end"]
        lines += ["", f"function controller.act({'state, ' if program.state else ''}observation)"]
        # A program is about doubles, and an observation may hold Lua's integers.
        names = enumerate(syntax.plain(program.inputs), 1)
        lines += [f"    local {name} = 1.0 * observation[{j}]" for j, name in names]
        action = ", ".join(syntax.outputs)
        result = f"math.tointeger({action})" if source.discrete else f"{{{action}}}"
        lines += [*body(program, syntax), f"    return {result}", "end", "", "return controller"]
        return "\n".join(lines) + "\n"

    def player(self, source: Source, folder: Path) -> Player:
        """Return the function that plays samples by the file in a folder."""
        (folder / "driver.lua").write_text(driver(source), encoding="utf-8")
        return driven([find_program("lua5.4", self.name), "driver.lua"], folder, source.played)

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return version_of("lua5.4", option="-v")


class LuaSyntax(Syntax):
    """Lua; the variables of the state are fields of a table `state`.

    Constants are floats, because Lua's integers overflow.
    """

    conjunction = "and"
    disjunction = "or"
    negation = "not ({})"
    unequal = "~="
    in_leaf = "state.leaf == {}"
    assignment = "{} = {}"
    call = "{outputs} = {part}({arguments})"
    comment = "-- {}"
    opening = "if {} then"
    further = "elseif {} then"
    otherwise = "else"
    end = "end"
    kept = "state.{}"
    reserved = """
        and break do else elseif end false for function goto if in local nil not or repeat return then true
        until while math observation state
    """


def body(program: Program, syntax: LuaSyntax) -> Iterator[str]:
    """Yield the variables of a function, and its statements."""
    own = [*program.outputs, *program.numbers, *program.flags]
    yield f"    local {', '.join(syntax.plain([name for name in own if name not in program.inputs]))}"
    yield from syntax.lines(program.statements, 1)


def driver(source: Source) -> str:
    """Return the Lua that reads samples from a file, and writes actions and states to another."""
    width, actions, _ = source.widths
    state = source.program.state
    played = ["action"] if source.discrete else [f"action[{k + 1}]" for k in range(actions)]
    played += [f"state.{one.name}{' and 1 or 0' if one.kind == 'flag' else ''}" for one in state]
    return f"""local controller = dofile("{source.name}.lua")
local samples = assert(io.open("{SAMPLES}", "rb")):read("a")
local played = assert(io.open("{PLAYED}", "wb"))
local state
for at = 1, #samples, {8 * (width + 1)} do
    local row = {{string.unpack("<{"d" * (width + 1)}", samples, at)}}
    local reset = table.remove(row, 1) > 0
    {"if reset then state = controller.reset() end" if state else ""}
    local action = controller.act({"state, " if state else ""}row)
    played:write(string.pack("<{"d" * source.played}", {", ".join(played)}))
end
played:close()
"""
