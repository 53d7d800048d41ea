"""A controller as a JavaScript module, run in node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from spaql.export.language import Source, Target
from spaql.export.running import PLAYED, SAMPLES, Player, driven, find_program, version_of
from spaql.export.syntax import Syntax
from spaql.languages import JAVASCRIPT, in_comment
from spaql.program.ir import Program


class JavaScript(Target):
    """One module without imports, for node and browsers."""

    name = "JavaScript"
    suffix = ".mjs"

    def text(self, source: Source) -> str:
        """Return the content of the file."""
        lines = ["/*", *(f" * {in_comment(line)}".rstrip() for line in source.heading), " */"]
        for name, part in source.parts.items():
            parameters = ", ".join(JavaScriptSyntax(part).plain(part.inputs))
            lines += ["", *_function(f"function {name}({parameters})", part)]
        if source.program.state:
            lines += ["", "/** The controller, with what it remembers; one for each plant. */"]
            lines += class_lines(source, "export class Controller")
        else:
            act = _function("export function act(observation)", source.program, source)
            lines += ["", *documented(source.notes()), *act]
        return "\n".join(lines) + "\n"

    def player(self, source: Source, folder: Path) -> Player:
        """Return the function that plays samples by the file in a folder."""
        state = [f"Number(controller.{variable.name})" for variable in source.program.state]
        return played_in_node(source.name, self.name, folder, source.widths, state)

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"node {version_of('node')}"


class JavaScriptSyntax(Syntax):
    """JavaScript; the variables of the state are properties."""

    kept = "this.{}"
    in_leaf = "this.leaf === {}"
    reserved = f"{JAVASCRIPT} act controller observation"


def _function(head: str, program: Program, source: Source | None = None) -> Iterator[str]:
    """Yield the lines of a function: that of a source, or one of its parts."""
    syntax = JavaScriptSyntax(program)
    yield f"{head} {{"
    if source is not None:
        yield f"    const [{', '.join(syntax.plain(program.inputs))}] = observation;"
    own = [
        word for word in (*program.outputs, *program.numbers, *program.flags) if word not in program.inputs
    ]
    yield f"    let {', '.join(syntax.plain(own))};"
    yield from syntax.lines(program.statements, 1)
    whole = source is not None and source.discrete and len(program.outputs) == 1
    yield f"    return {syntax.outputs[0] if whole else '[' + ', '.join(syntax.outputs) + ']'};"
    yield "}"


def documented(notes: Sequence[str]) -> Iterator[str]:
    """Yield the comment before the function `act`, with lines on observations and actions."""
    lines = ["Return the action for an observation.", "", *notes]
    yield "/**"
    yield from (f" * {in_comment(line)}".rstrip() for line in lines)
    yield " */"


def class_lines(source: Source, head: str) -> Iterator[str]:
    """Yield the lines of the class of a controller with memory."""
    program = source.program
    syntax = JavaScriptSyntax(program)
    yield from (f"{head} {{", "    /** Seconds between samples. */")
    yield from (f"    static sampleTime = {source.sample_time!r};", "", "    constructor() {")
    yield from ("        this.reset();", "    }", "")
    yield from ("    /** Forget everything, before the first sample. */", "    reset() {")
    yield from (
        f"        this.{variable.name} = {syntax.value(variable)}; // {in_comment(variable.note)}"
        for variable in program.state
    )
    yield from ("    }", "")
    lines = (*documented(source.notes()), *_function("act(observation)", program, source))
    yield from ("    " + line for line in lines)
    yield "}"


def played_in_node(
    name: str, what: str, folder: Path, widths: tuple[int, int, int], state: Sequence[str]
) -> Player:
    """Return the function that plays samples by the module of a name in a folder.

    `state` are expressions for the numbers of the state of `controller`; without any, the module has no
    class `Controller`.
    """
    width, *played = widths
    (folder / "driver.mjs").write_text(
        f"""import {{ readFileSync, writeFileSync }} from "node:fs";
import * as made from "./{name}.mjs";
const data = readFileSync("{SAMPLES}");
const rows = new Float64Array(data.buffer, data.byteOffset, data.length / 8);
const played = new Float64Array((rows.length / {width + 1}) * {sum(played)});
const controller = {"new made.Controller()" if state else "made"};
let place = 0;
for (let at = 0; at < rows.length; at += {width + 1}) {{
    if (rows[at] > 0) controller.reset();
    const action = controller.act(rows.subarray(at + 1, at + {width + 1}));
    for (const x of [].concat(action, [{", ".join(state)}])) played[place++] = x;
}}
writeFileSync("{PLAYED}", new Uint8Array(played.buffer));
""",
        encoding="utf-8",
    )
    return driven([find_program("node", what), "driver.mjs"], folder, sum(played))
