"""List the tests that are slow, in slow.txt, and the cases that take long, in long.txt.

On a machine that does nothing else, of all tests or, for a start, of those that are run by day:

    SPAQL_NIGHTLY=1 pytest -n 2 -o junit_duration_report=call --junitxml=times.xml
    python tests/list_slow.py times.xml

    pytest -n 2 -m "not long" -o junit_duration_report=call --junitxml=times.xml
    python tests/list_slow.py times.xml

Fixtures do not count: another case would have to make them. What was not run keeps its place in the lists.
"""

import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Container
from pathlib import Path

SLOW = 0.25
"""Seconds of one case that make a test function slow."""

LONG_CASE = 1
"""Seconds that make a case long where a quicker case of its function is run by day."""
LONG_FUNCTION = 3
"""Seconds that make the quickest case of a function long."""

DAILY = (
    "tests/agents/test_fitting.py::test_a_log_becomes_a_run_with_a_verdict",
    "tests/agents/test_golden.py::",
    "tests/algorithms/treesearch/test_ladder.py::test_the_chosen_controller_has_an_integral_and_rests_at_the_set_point",
    "tests/cli/test_installed.py::test_an_interrupted_training_is_saved_and_can_go_on",
    "tests/cli/test_shell.py::test_stdout_is_one_json_document",
    "tests/cli/test_stress_command.py::test_the_report_has_all_parts",
    "tests/export/test_equivalence.py::test_every_form_does_what_the_tree_does",
    "tests/export/test_memory.py::test_every_feature_and_limit_is_the_same_in_every_format[2-",
    "tests/plugins/page/test_play.py::test_the_plant_runs_as_in_python[MountainCarContinuous-v0]",
    "tests/plugins/paper/test_reproduction.py::test_a_small_study[pendulum5-spaql-ts--1150--200]",
    "tests/test_docs.py::test_python_blocks_run_in_order[README.md]",
    "tests/test_docs.py::test_the_first_minute",
    "tests/plugins/certificates/test_certificate.py::test_what_is_never_left_is_confirmed",
)
"""Run by day however long they take: they stand for whole commands, or compile and run exported code."""


def main() -> None:
    """Read the times, and write both lists."""
    times: dict[str, float] = {}
    for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
        if case.find("skipped") is None:
            path = case.get("classname", "").replace(".", "/")
            times[f"{path}.py::{case.get('name', '')}"] = float(case.get("time", 0))
    functions: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for case_name, seconds in times.items():
        functions[case_name.partition("[")[0]].append((seconds, case_name))
    slow = {name for name, cases in functions.items() if max(cases)[0] > SLOW}
    long = {
        case_name
        for cases in functions.values()
        for i, (seconds, case_name) in enumerate(sorted(cases))
        if seconds > (LONG_CASE if i else LONG_FUNCTION) and not case_name.startswith(DAILY)
    }
    _write("slow.txt", slow, functions)
    _write("long.txt", long, times)


def _write(file: str, names: set[str], measured: Container[str]) -> None:
    """Write a list, of which what was not measured is kept."""
    path = Path(__file__).with_name(file)
    before = path.read_text(encoding="utf-8").splitlines()
    kept = {name for name in before if name not in measured and _exists(name)}
    path.write_text("".join(f"{name}\n" for name in sorted(names | kept)), encoding="utf-8")


def _exists(name: str) -> bool:
    """Return whether there still is a test function, whose cases may have other names by now."""
    file, _, function = name.partition("[")[0].partition("::")
    path = Path(__file__).parents[1] / file
    return path.exists() and f"def {function.rpartition('::')[2]}(" in path.read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
