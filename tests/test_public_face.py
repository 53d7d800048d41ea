"""What `import spaql` offers and what it costs."""

import os
import subprocess
import sys

import pytest

import spaql

NAMES = [
    "AQL", "Agent", "ArchiveError", "BadEnvironmentError", "CheckReport", "Controller", "Dynamics",
    "Evaluation", "History", "Learner", "MissingExtraError", "Partition", "PartitionLearner",
    "PartitionPolicy", "PlanTree", "Policy", "Problem", "RandomPolicy", "Results", "RuleTree",
    "RuleTreePolicy", "Run", "SPAQL", "SPAQLTS", "SettingError", "Settings", "SpaqlError", "Summary",
    "UnsupportedSpaceError", "__version__", "check_agent", "check_problem", "evaluate", "export", "grid",
    "load", "make_problem", "read_study", "results", "rule_tree", "sweep",
]  # fmt: skip


def fresh_python(code: str) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
    ).stdout


def test_the_public_names_are_these() -> None:
    assert sorted(spaql.__all__) == sorted(NAMES) == sorted(dir(spaql))
    for name in NAMES:
        assert getattr(spaql, name) is not None


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
        "for name in spaql.__all__: getattr(spaql, name)\n"
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
