"""What `import spaql` offers and what it costs."""

import ast
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import spaql

NAMES = [
    "AQL", "Agent", "ArchiveError", "BadEnvironmentError", "CheckReport", "ContradictedProofError",
    "Controller", "Design", "Dynamics", "Evaluation", "Fitted", "Hardware", "History", "Learner",
    "MissingExtraError", "NotTrainedError", "Partition", "PartitionLearner", "PartitionPolicy", "PlanTree",
    "Policy", "Problem", "RandomPolicy", "Results", "Run", "SPAQL", "SPAQLTS", "SettingError", "Settings",
    "SpaqlError", "Summary", "TreeSearch", "UnsupportedSpaceError", "__version__", "check_agent",
    "check_problem", "controller_of", "distil", "evaluate", "fit", "grid", "load", "make_problem",
    "read_study", "results", "rules", "sweep",
]  # fmt: skip
MODULES = [
    "agents", "algorithms", "checks", "classical", "controllers", "evaluation", "export", "figures",
    "learned_plants", "partition", "plugins", "problems", "simulate", "spaces", "stats", "verify", "zoo",
]  # fmt: skip

FIRST = [
    "AQL", "Controller", "Dynamics", "PlanTree", "SPAQL", "SPAQLTS", "TreeSearch", "__version__",
    "check_problem", "controller_of", "controllers", "distil", "evaluate", "evaluation", "export", "figures",
    "fit", "load", "make_problem", "rules", "sweep", "verify", "zoo",
]  # fmt: skip
"""What `dir` lists, and editors complete: what a user types first."""


def fresh_python(code: str) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
    ).stdout


def test_the_public_names_are_these() -> None:
    assert sorted(spaql.__all__) == sorted(dir(spaql)) == sorted(FIRST)
    assert {*FIRST} <= {*NAMES, *MODULES}
    for name in NAMES:
        assert getattr(spaql, name) is not None


def test_submodules_are_attributes_and_are_loaded_on_use() -> None:
    code = f"""
import sys, spaql
assert [name for name in {MODULES} if f"spaql.{{name}}" in sys.modules] == []
for name in {MODULES}:
    assert getattr(spaql, name).__name__ == f"spaql.{{name}}"
"""
    assert fresh_python(code) == ""


def found(path: str) -> Any:
    """What a dotted path names: a module, or an attribute of one."""
    try:
        return import_module(path)
    except ModuleNotFoundError:
        home, _, name = path.rpartition(".")
        return getattr(found(home), name)


def documented() -> list[Any]:
    """All that the directives of the reference name, with the members that they list."""
    text = (Path(__file__).parent.parent / "docs" / "reference.md").read_text()
    things = []
    for kind, path, options in re.findall(r"^\.\. auto(\w+):: (\S+)\n((?:   :.*\n)*)", text, re.MULTILINE):
        thing = found(path)
        things.append(thing)
        members = re.search(r":members:(.*)", options)
        if kind == "module" and members is not None:
            listed = members[1].replace(",", " ").split() or [one for one in vars(thing) if one[0] != "_"]
            things += [getattr(thing, name) for name in listed]
    return things


def test_every_public_name_is_in_the_reference() -> None:
    there = documented()
    missing = [n for n in NAMES if n != "__version__" and not any(getattr(spaql, n) is one for one in there)]
    assert missing == []


def test_every_public_name_has_a_docstring() -> None:
    for name in set(NAMES) - {"__version__"}:
        own = getattr(spaql, name).__doc__
        assert own, f"{name} has no docstring"
        assert own.strip().partition("\n")[0].endswith("."), (
            f"the docstring of {name} begins with no sentence"
        )


def test_unknown_names_are_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = spaql.nonsense


def test_all_errors_are_spaql_errors() -> None:
    for name in NAMES:
        if name.endswith("Error"):
            assert issubclass(getattr(spaql, name), spaql.SpaqlError)


HEAVY = "{'torch', 'ray', 'matplotlib', 'scipy', 'onnx', 'pandas', 'rich'}"


def test_import_loads_nothing_heavy() -> None:
    assert fresh_python(f"import sys, spaql; print(sorted({HEAVY} & set(sys.modules)))").strip() == "[]"


def test_use_loads_nothing_heavier_than_numba_does() -> None:
    code = (
        "import sys, numba, gymnasium, spaql\n"
        "before = set(sys.modules)\n"  # Numba itself imports scipy where it is installed
        f"for name in {NAMES + MODULES}: getattr(spaql, name)\n"
        f"print(sorted({HEAVY} & set(sys.modules) - before))"
    )
    assert fresh_python(code).strip() == "[]"


def test_help_imports_neither_numba_nor_gymnasium() -> None:
    code = (
        "import sys\n"
        "from spaql.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'numba', 'gymnasium', 'rich'} & set(sys.modules)))"
    )
    assert fresh_python(code).strip().endswith("[]")


def test_messages_of_the_library_name_no_options_of_commands() -> None:
    """They name settings (`SpaqlError.settings`), of which the command line makes its options."""
    library = Path(spaql.__file__).parent
    found = []
    for file in library.rglob("*.py"):
        if {"cli", "paper", "compare", "design"} & {*file.relative_to(library).parts}:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Raise):
                texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
                named = [one for one in texts if isinstance(one, str) and re.search(r"(^|[ (`])--[a-z]", one)]
                found += [(file.name, one) for one in named if "ray start" not in one]
    assert found == []


def test_training_loads_no_export_target() -> None:
    loaded = "[name for name in sys.modules if name.startswith('spaql.export')]"
    assert fresh_python(f"import sys, spaql.cli.train; print({loaded})").strip() == "[]"
