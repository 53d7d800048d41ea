"""Names of any text come out of every export as identifiers, comments and strings, and as nothing else."""

import ast
import dataclasses
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import tree_sitter_c
import tree_sitter_javascript
import tree_sitter_python
import tree_sitter_rust
from gymnasium.spaces import Box
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from tree_sitter import Language, Node, Parser

import spaql
import spaql.export
from export_forms import FORMS, SLOW_FORMS
from hostile_names import CODE, ODD, choice_tree, law_tree, with_memory
from memory_targets import TARGETS
from nightly import thorough
from random_trees import random_tree
from spaql import ArchiveError, SettingError
from spaql.controllers import Controller, Lag
from spaql.export.equivalence import check_equivalence
from spaql.export.languages.c import C
from spaql.export.machine import machine_of

pytestmark = pytest.mark.slow

GRAMMARS = {
    ".c": tree_sitter_c,
    ".h": tree_sitter_c,
    ".rs": tree_sitter_rust,
    ".mjs": tree_sitter_javascript,
    ".py": tree_sitter_python,
}
WITHOUT_TOOLS = {name: form for name, form in (FORMS | SLOW_FORMS).items() if name != "JSON"}
"""Forms whose texts are made without a compiler."""

FEW = settings(max_examples=thorough(50), deadline=None, phases=set(Phase) - {Phase.shrink, Phase.explain})
"""An example is written in twenty forms."""
text = st.text(max_size=40) | st.lists(
    st.sampled_from([*ODD, *CODE, *"\n\r\\*/()\"'?`~<>{}%#-;\u2028\u202e\ud800\x00\x1b"]), max_size=6
).map("".join)


printable = text.map(str.strip).filter(
    lambda name: name.isprintable() and name and "[" not in name and name != "other"
)


def leaves(node: Node) -> Iterator[tuple[str, str]]:
    if "comment" in node.type or node.type in ("string", "string_content"):
        return  # of Python, strings are docstrings
    if not node.children:
        name = node.type in ("identifier", "type_identifier", "field_identifier", "property_identifier")
        yield node.type, "" if name else node.text.decode(errors="replace")
    for child in node.children:
        yield from leaves(child)


def parsed(suffix: str, content: bytes) -> list[tuple[str, str]]:
    """Return the tokens of a file, without comments, and without what identifiers are called."""
    if suffix == ".py":  # Python itself says what a docstring is
        tree = ast.parse(content)
        for one in ast.walk(tree):
            if (
                isinstance(one, ast.FunctionDef | ast.ClassDef | ast.Module)
                and ast.get_docstring(one) is not None
            ):
                one.body = one.body[1:]
            for field in ("id", "arg", "attr"):
                if hasattr(one, field):
                    setattr(one, field, "x")
        return [("python", ast.dump(tree))]
    if suffix in (".c", ".h"):  # as a compiler does before it reads: trigraphs, then line splices
        content = re.sub(rb"\\[ \t]*\r?\n", b"", content.replace(b"??/", b"\\"))
    root = Parser(Language(GRAMMARS[suffix].language())).parse(content).root_node
    # Macros between a declaration and its value, and a brace within #ifdef, are errors to these parsers.
    return [("has an error", str(root.has_error)), *leaves(root)]


LEXED = {
    ".m": r"%[^\n]*",
    ".st": r"\(\*.*?\*\)",
}
"""Comments of languages that no parser here reads; strings occur in none of these files."""


def lexed(suffix: str, content: bytes) -> list[tuple[str, str]]:
    plain = re.sub(LEXED[suffix], "", content.decode(), flags=re.DOTALL)
    words = re.findall(r"[A-Za-z_]\w*|[\d.]+|\S", plain)
    return [("", "") if re.fullmatch(r"(x\d+_?)?[a-z_][a-z0-9_]*", word) else ("", word) for word in words]


def xml_tokens(content: bytes) -> list[tuple[str, str]]:
    """Return elements but documentation, which is text, and the tokens of the body."""
    root = ET.fromstring(content)
    body = next(one for one in root.iter() if one.tag.endswith("}ST"))[0].text
    for one in list(root.iter()):
        for child in list(one):
            if child.tag.endswith("}documentation"):
                one.remove(child)
    return [*((one.tag, ",".join(sorted(one.attrib))) for one in root.iter()), *lexed(".st", body.encode())]


def tokens(file: str, content: bytes) -> list[tuple[str, str]]:
    suffix = Path(file).suffix
    if suffix in GRAMMARS:
        return parsed(suffix, content)
    if suffix in LEXED:
        return lexed(suffix, content)
    return xml_tokens(content) if suffix == ".xml" and b"pou " in content else []


def raw(content: bytes) -> set[str]:
    """Return the characters of a file that are not printable."""
    return {c for c in content.decode() if not c.isprintable()} - {"\n", "\t"}


def same(plain: dict[str, bytes], hostile: dict[str, bytes]) -> None:
    assert list(plain) == list(hostile)
    for file, content in hostile.items():
        if not file.endswith(".onnx"):
            assert not raw(content), file
            assert tokens(file, content) == tokens(file, plain[file]), file


def written(make: Callable[[str, str, str], spaql.Controller], names: tuple[str, str, str], origin: str):
    tree = make(*names)
    for form, (target, number) in WITHOUT_TOOLS.items():
        if number == "double" or tree.discrete:
            yield form, target.write(machine_of(tree, number, provenance=[origin]), "controller")


def choices(first: str, second: str, third: str) -> spaql.Controller:
    return choice_tree(first, second, (third, "other"))


@pytest.mark.parametrize("make", [law_tree, choices])
@settings(FEW)
@given(st.tuples(printable, printable, printable).filter(lambda names: names[0] != names[1]), text)
@example((CODE[0], CODE[9], CODE[15]), CODE[8])
def test_names_of_any_text_are_identifiers_and_comments(make, names, origin) -> None:
    plain = dict(written(make, ("first", "second", "third"), "origin"))
    for form, files in written(make, names, origin):
        same(plain[form], files)


@pytest.mark.parametrize("name", CODE)
@pytest.mark.parametrize("make", [law_tree, choices])
def test_names_that_were_code(make, name: str) -> None:
    """Those of several lines can only be in the text about the origin."""
    origin = name
    if not name.isprintable():
        with pytest.raises(SettingError, match="a name is a text on one line"):
            make(name, "second", "third")
        name = "first"
    plain = dict(written(make, ("first", "second", "third"), "origin"))
    for form, files in written(make, (name, "second", name), origin):
        same(plain[form], files)


@settings(FEW)
@given(printable, text)
@example(CODE[0], CODE[5])
def test_controllers_with_memory_and_names_of_any_text(name: str, origin: str) -> None:
    machine, plain = (
        machine_of(with_memory(n), provenance=[o]) for n, o in ((name, origin), ("one", "origin"))
    )
    for key, target in TARGETS.items():
        if key not in ("json", "onnx"):
            made, wanted = (target.write(m, "controller") for m in (machine, plain))
            same(wanted, made)


def with_names(names: list[str], kind: str, sums: int = 0) -> spaql.Controller:
    """Return a tree whose observations, and as many actions as it has, have all of some names."""
    tree = random_tree(np.random.default_rng(0), len(names), 40, kind, sums=sums)
    return dataclasses.replace(tree, observations=tuple(names), actions=tuple(names[: len(tree.actions)]))


@pytest.mark.parametrize("form", [*FORMS, *SLOW_FORMS])
def test_odd_names_and_code_run_in_every_target(form: str, tmp_path: Path) -> None:
    target, number = (FORMS | SLOW_FORMS)[form]
    kind, sums = ("laws", 1) if number == "double" else ("choices", 0)
    names = [*ODD, *filter(str.isprintable, CODE)]
    most = 31 if form.startswith("MicroPython") else len(names)  # of which a function has a limited size
    for begin in range(0, len(names), most):
        some = names[begin : begin + most]
        controller = machine_of(with_names(some, kind, sums), number, provenance=[*some, *CODE])
        files = target.write(controller, "controller")
        check_equivalence(target, controller, files, "controller", tmp_path, 20)


@pytest.mark.parametrize("key", TARGETS)
def test_odd_names_run_in_every_target_with_memory(key: str, tmp_path: Path) -> None:
    controller = Controller.of_laws(
        tuple(Lag(f"{name.replace('[', '(')} before", name) for name in ODD),
        {ODD[0]: {f"{ODD[1]} before": 2.0, "a'b before": 0.5}},
        observation_space=Box(-1.0, 1.0, (len(ODD),), np.float64),
        action_space=Box(-1.0, 1.0, (1,), np.float64),
        observations=ODD,
        actions=ODD[:1],
        sample_time=0.5,
    )
    target = TARGETS[key]
    machine = machine_of(controller, provenance=ODD)
    files = target.write(machine, "controller")
    check_equivalence(target, machine, files, "controller", tmp_path, 20)


@pytest.mark.parametrize(
    "compiler",
    ["gcc -std=c99", "gcc -std=gnu11", "gcc -std=gnu2x", "clang -std=gnu17", "g++ -x c++ -std=c++17"],
)
def test_exported_c_is_c_of_every_kind_and_cpp(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler.split()[0]) is None:
        pytest.skip(f"{compiler} is not installed")
    machine = machine_of(with_memory("new"))
    sources = C().write(machine, "memory")
    for kind in ("choices", "laws"):
        sources |= C().write(machine_of(with_names(ODD, kind)), kind)
    for file, content in sources.items():
        (tmp_path / file).write_bytes(content)
    words = [*compiler.split(), "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only"]
    codes = [file for file in sources if file.endswith(".c")]
    done = subprocess.run([*words, *codes], cwd=tmp_path, capture_output=True, text=True)
    assert not done.returncode, done.stderr


@pytest.mark.parametrize("name", ["while", "class", "fn", "Int", "end"])
def test_a_file_name_that_is_a_word_of_a_language_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="a word of some language"):
        spaql.export.rust(law_tree("a", "b", "c"), tmp_path / f"{name}.rs")


UNPRINTABLE = ["a\nb", "\x1b]0;title\x07", "a\0b", "\u202eabc", "\ud800", "a\x85", "a\u2028"]


@pytest.mark.parametrize("name", UNPRINTABLE)
def test_files_with_names_that_are_not_printable_are_refused(name: str, tmp_path: Path) -> None:
    tree = law_tree("first", "second", "third")
    spaql.export.json(tree, tmp_path / "controller.json", points=10)
    data = json.loads((tmp_path / "controller.json").read_bytes())
    controller = data["controller"]
    for part in ("observations", "actions"):
        changed = controller | {part: [name, *controller[part][1:]]}
        (tmp_path / "changed.json").write_text(json.dumps(data | {"controller": changed}))
        with pytest.raises(ArchiveError, match="a name is a text on one line"):
            spaql.export.controller_from_json(tmp_path / "changed.json")
    with pytest.raises(SettingError, match="a name is a text on one line"):
        spaql.export.json(law_tree("first", "second", name), tmp_path / "other.json", points=10)
