"""A controller as a Rust module that needs nothing but `core`, compiled by rustc."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from spaql.errors import SpaqlError
from spaql.export.language import Source, Target
from spaql.export.running import PLAYED, SAMPLES, Player, driven, find_program, run, version_of
from spaql.export.syntax import Syntax
from spaql.languages import RUST, in_comment
from spaql.program.ir import Program, State

FLAGS = ("--edition=2021", "-O", "-D", "warnings")
"""Flags with which exported controllers compile without a warning."""
_TYPES = {"double": "f64", "float": "f32"}
_ALLOWED = "#[allow(unused_assignments, unused_mut, unused_variables, clippy::all, clippy::pedantic)]"


class Rust(Target):
    """One module without `std`, for `mod controller;`."""

    name = "Rust"
    suffix = ".rs"
    numbers = ("double", "float")

    def text(self, source: Source) -> str:
        """Return the content of the file."""
        lines = [f"//! {in_comment(line)}".rstrip() for line in source.heading]
        lines += ["//!", "//! It uses nothing but `core`, and is for crates with `no_std`, too."]
        single = source.number == "float"
        for name, part in source.parts.items():
            lines += ["", *_part(name, part, source, single=single)]
        lines += ["", *(_object(source) if source.program.state else _act(source))]
        return "\n".join(lines) + "\n"

    def player(self, source: Source, folder: Path) -> Player:
        """Compile the file without `std`, and with a driver program."""
        compiler = find_program("rustc", self.name)
        library = folder / "library.rs"
        driver = folder / "driver.rs"
        library.write_text(f"#![no_std]\npub mod {source.name};\n", encoding="utf-8")
        driver.write_text(_driver(source), encoding="utf-8")
        failed = "rustc does not compile the exported controller"
        commands = (["--crate-type=lib", "--emit=metadata", library.name], [driver.name])
        for words in commands:
            run([compiler, *FLAGS, *words], folder, SpaqlError, failed)
        program = folder / ("driver.exe" if os.name == "nt" else "driver")
        return driven([str(program)], folder, source.played)

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"{version_of('rustc')}, {' '.join(FLAGS)}"


class RustSyntax(Syntax):
    """Rust; the variables of the state are fields."""

    opening = "if {} {{"
    further = "}} else if {} {{"
    kept = "self.{}"
    reserved = f"{RUST} act controller observation"
    widened = "f64::from({})"


def _body(program: Program, syntax: RustSyntax) -> Iterator[str]:
    """Yield the variables and the statements of a function."""
    for word in syntax.plain([*program.outputs, *program.numbers]):
        yield f"    let mut {word}: f64 = 0.0;"
    yield from (f"    let mut {word} = false;" for word in syntax.plain(program.flags))
    yield from syntax.lines(program.statements, 1)


def _part(name: str, part: Program, source: Source, *, single: bool) -> Iterator[str]:
    singles = source.program.inputs if single else ()
    syntax = RustSyntax(part, singles)
    kinds = ("f32" if word in singles else "f64" for word in part.inputs)
    parameters = (f"{word}: {kind}" for word, kind in zip(syntax.plain(part.inputs), kinds, strict=True))
    yield _ALLOWED
    yield f"fn {name}({', '.join(parameters)}) -> [f64; {len(part.outputs)}] {{"
    yield from _body(part, syntax)
    yield from (f"    [{', '.join(syntax.outputs)}]", "}")


def _act(source: Source, receiver: str = "") -> Iterator[str]:
    """Yield the lines of the function."""
    program = source.program
    kind = _TYPES[source.number]
    remembers = bool(program.state)
    single = source.number == "float"
    syntax = RustSyntax(program, program.inputs if single and not remembers else ())
    yield "/// Returns the action for an observation."
    yield "///"
    yield from (f"/// {in_comment(line)}  " for line in source.notes())
    yield _ALLOWED
    n, m, _ = source.widths
    returned = "i32" if source.discrete else f"[{kind}; {m}]"
    yield f"pub fn act({receiver}observation: &[{kind}; {n}]) -> {returned} {{"
    for j, word in enumerate(syntax.plain(program.inputs)):
        component = f"observation[{j}]"
        yield f"    let {word} = {f'f64::from({component})' if single and remembers else component};"
    yield from _body(program, syntax)
    if source.discrete:
        yield f"    {syntax.outputs[0]} as i32"
    else:
        yield f"    [{', '.join(f'{word} as f32' if single else word for word in syntax.outputs)}]"
    yield "}"


def _object(source: Source) -> Iterator[str]:
    syntax = RustSyntax(source.program)
    kinds = {"real": "f64", "flag": "bool", "leaf": "i32"}
    yield "/// Seconds between samples."
    yield from (f"pub const SAMPLE_TIME: f64 = {source.sample_time!r};", "")
    yield "/// What the controller remembers: one for each plant."
    yield from ("#[derive(Clone, Copy, Debug)]", "pub struct Controller {")
    for variable in source.program.state:
        yield from (
            f"    /// {in_comment(variable.note)}",
            f"    pub {variable.name}: {kinds[variable.kind]},",
        )
    yield from ("}", "", "impl Controller {", "    /// Returns a controller before the first sample.")
    yield from ("    #[must_use]", "    pub const fn new() -> Self {", "        Self {")
    yield from (
        f"            {variable.name}: {syntax.value(variable)}," for variable in source.program.state
    )
    yield from ("        }", "    }", "", "    /// Forgets everything, before the first sample.")
    yield from ("    pub fn reset(&mut self) {", "        *self = Self::new();", "    }", "")
    yield from ("    " + line for line in _act(source, "&mut self, "))
    yield "}"


def _value(variable: State) -> str:
    return (
        f"f64::from(u8::from(controller.{variable.name}))"
        if variable.kind == "flag"
        else f"controller.{variable.name}"
    )


def _driver(source: Source) -> str:
    n = source.widths[0]
    state = source.program.state
    kind = _TYPES[source.number]
    rows = ", ".join(f"row[{j + 1}] as {kind}" for j in range(n))
    done = "[action as f64]" if source.discrete else f"action.map(|x: {kind}| x as f64)"
    dump = "".join(f"played.push({_value(variable)} as f64); " for variable in state)
    act = "controller.act" if state else f"{source.name}::act"
    return f"""#![allow(dead_code, clippy::all)]
mod {source.name};
use std::convert::TryInto;

fn main() {{
    let data = std::fs::read("{SAMPLES}").unwrap();
    let rows: Vec<f64> = data.chunks(8).map(|x| f64::from_le_bytes(x.try_into().unwrap())).collect();
    let mut played: Vec<f64> = Vec::with_capacity(rows.len() / {n + 1} * {source.played});
    {f"let mut controller = {source.name}::Controller::new();" if state else ""}
    for row in rows.chunks({n + 1}) {{
        {"if row[0] > 0.0 { controller.reset(); }" if state else ""}
        let action = {act}(&[{rows}]);
        played.extend_from_slice(&{done});
        {dump}
    }}
    let bytes: Vec<u8> = played.iter().flat_map(|x| x.to_le_bytes()).collect();
    std::fs::write("{PLAYED}", bytes).unwrap();
}}
"""
