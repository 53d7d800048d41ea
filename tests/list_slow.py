"""List the tests that are slow.

pytest -n 2 --junitxml=times.xml; python tests/list_slow.py times.xml > tests/slow.txt
"""

import sys
import xml.etree.ElementTree as ElementTree

SECONDS = 0.25


def main() -> None:
    """Print each test function of which one case, with its fixtures, took longer."""
    slow = set()
    for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
        if float(case.get("time", 0)) > SECONDS:
            path = case.get("classname", "").replace(".", "/")
            slow.add(f"{path}.py::{case.get('name', '').partition('[')[0]}")
    print("\n".join(sorted(slow)))


if __name__ == "__main__":
    main()
