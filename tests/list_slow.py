"""List the tests that are slow, in slow.txt, and the cases that take long, in long.txt.

SPAQL_NIGHTLY=1 pytest -n 2 --junitxml=times.xml; python tests/list_slow.py times.xml
"""

import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

SLOW = 0.25
"""Seconds of one case, with its fixtures, that make a test function slow."""

LONG_CASE, LONG_FUNCTION = 3, 5
"""Seconds that make a case long: beside a quicker case of its function, which is run by day, and alone."""

DAILY = (
    "tests/agents/test_fitting.py::test_a_log_becomes_a_run_with_a_verdict",
    "tests/agents/test_golden.py::",
    "tests/algorithms/treesearch/test_ladder.py::test_the_chosen_controller_has_an_integral_and_rests_at_the_set_point",
    "tests/cli/test_shell.py::test_stdout_is_one_json_document",
    "tests/cli/test_stress_command.py::test_the_report_has_all_parts",
    "tests/plugins/page/test_play.py::test_the_plant_runs_as_in_python[MountainCarContinuous-v0]",
    "tests/plugins/paper/test_reproduction.py::test_a_small_study[pendulum5-spaql-ts--1150--200]",
    "tests/test_docs.py::test_python_blocks_run_in_order[README.md]",
    "tests/test_docs.py::test_the_first_minute",
    "tests/plugins/certificates/test_certificate.py::test_what_is_never_left_is_confirmed",
)
"""Run by day however long they take: they stand for whole commands, or others share their fixtures."""


def main() -> None:
    """Read the times, and write both lists."""
    functions: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
        path = case.get("classname", "").replace(".", "/")
        name = case.get("name", "")
        functions[f"{path}.py::{name.partition('[')[0]}"].append(
            (float(case.get("time", 0)), f"{path}.py::{name}")
        )
    slow = [name for name, cases in functions.items() if max(cases)[0] > SLOW]
    long = [
        case
        for cases in functions.values()
        for i, (seconds, case) in enumerate(sorted(cases))
        if seconds > (LONG_CASE if i else LONG_FUNCTION) and not case.startswith(DAILY)
    ]
    folder = Path(__file__).parent
    for file, names in (("slow.txt", slow), ("long.txt", long)):
        (folder / file).write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")


if __name__ == "__main__":
    main()
