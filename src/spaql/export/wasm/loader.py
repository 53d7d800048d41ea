"""The C around a controller that makes it a WebAssembly module, and the JavaScript that loads it."""

from __future__ import annotations

from collections.abc import Iterator

from spaql.export.language import Source
from spaql.export.languages.javascript import documented
from spaql.languages import in_comment

_STATE = (
    "    /** What is remembered, by name; to change numbers, assign an object that has these. */",
    "    get state() {",
    "        return Object.fromEntries(Controller.names.map((name, i) => [name, this.kept[i]]));",
    "    }",
    "",
    "    set state(values) {",
    "        for (const [name, value] of Object.entries(values)) {",
    "            const i = Controller.names.indexOf(name);",
    "            if (i < 0) throw new RangeError(`The controller does not remember ${name}.`);",
    "            this.kept[i] = value;",
    "        }",
    "    }",
    "",
)


def module_source(source: Source) -> str:
    """Return C that keeps the numbers of a controller where the host reads and writes them."""
    name = source.name
    prefix = source.name.upper()
    lines = [
        f'#include "{name}.h"',
        f"double observation[{prefix}_OBSERVATIONS];",
        f"double action[{prefix}_ACTIONS];",
    ]
    if not source.program.state:
        call = f"{name}_act(observation, action);"
        return "\n".join([*lines, "void act(void);", f"void act(void) {{ {call} }}", ""])
    numbered = list(enumerate(source.program.state))
    kinds = {
        variable.name: "double" if variable.kind == "real" else "int" for variable in source.program.state
    }
    lines += [
        f"double state[{len(numbered)}];",
        f"static void keep(const {name}_state *kept)",
        "{",
        *(f"    state[{i}] = (double)kept->{variable.name};" for i, variable in numbered),
        "}",
        "void reset(void);",
        "void reset(void)",
        "{",
        f"    {name}_state kept;",
        f"    {name}_reset(&kept);",
        "    keep(&kept);",
        "}",
        "void act(void);",
        "void act(void)",
        "{",
        f"    {name}_state kept;",
        *(f"    kept.{variable.name} = ({kinds[variable.name]})state[{i}];" for i, variable in numbered),
        f"    {name}_act(&kept, observation, action);",
        "    keep(&kept);",
        "}",
        "",
    ]
    return "\n".join(lines)


def loader(source: Source) -> str:
    """Return the JavaScript module that loads the WebAssembly beside it."""
    lines = ["/*", *(f" * {in_comment(line)}".rstrip() for line in source.heading), " */"]
    lines += [
        "",
        f'const url = new URL("./{source.name}.wasm", import.meta.url);',
        "const bytes =",
        '    url.protocol === "file:"',
        '        ? await (await import("node:fs/promises")).readFile(url)',
        "        : await (await fetch(url)).arrayBuffer();",
        "const code = await WebAssembly.compile(bytes);",
        "",
        *(_class(source) if source.program.state else _function(source)),
    ]
    return "\n".join(lines) + "\n"


def _numbers(source: Source) -> Iterator[str]:
    """Yield the lines that make an instance, and views of its numbers."""
    yield "const { exports } = await WebAssembly.instantiate(code);"
    for name, width in zip(("seen", "done"), source.widths[:2], strict=True):
        place = {"seen": "observation", "done": "action"}[name]
        yield f"const {name} = new Float64Array(exports.memory.buffer, exports.{place}.value, {width});"


def _body(source: Source, of: str) -> Iterator[str]:
    """Yield the statements of `act`; a number that is missing counts as NaN."""
    width = source.widths[0]
    yield f"    for (let j = 0; j < {width}; ++j) {of}seen[j] = observation[j];"
    yield f"    {of}exports.act();"
    yield f"    return {f'{of}done[0]' if source.discrete else f'Array.from({of}done)'};"


def _function(source: Source) -> Iterator[str]:
    yield from (*_numbers(source), "")
    yield from documented(source.notes())
    yield from ("export function act(observation) {", *_body(source, ""), "}")


def _class(source: Source) -> Iterator[str]:
    yield "/** The controller, with what it remembers; one for each plant. */"
    yield from ("export class Controller {", "    /** Seconds between samples. */")
    yield f"    static sampleTime = {source.sample_time!r};"
    yield from ("    /** The numbers that are remembered. */", "    static names = [")
    yield from (
        f'        "{variable.name}", // {in_comment(variable.note)}' for variable in source.program.state
    )
    yield from ("    ];", "", "    constructor() {")
    yield "        this.exports = new WebAssembly.Instance(code).exports;"
    for name, place, width in zip(
        ("seen", "done", "kept"), ("observation", "action", "state"), source.widths, strict=True
    ):
        yield f"        const {place} = this.exports.{place}.value;"
        yield f"        this.{name} = new Float64Array(this.exports.memory.buffer, {place}, {width});"
    yield from ("        this.reset();", "    }", "")
    yield from ("    /** Forget everything, before the first sample. */", "    reset() {")
    yield from ("        this.exports.reset();", "    }", "")
    yield from _STATE
    lines = (*documented(source.notes()), "act(observation) {")
    yield from ("    " + line for line in (*lines, *_body(source, "this."), "}"))
    yield "}"
