"""The paper's claims, as judged in one study or in several, side by side.

    python benchmarks/claims.py paper
    python benchmarks/claims.py authors=paper text=paper-text > claims.md

Each argument is the folder of a study that `spaql paper --out FOLDER` has reported on, with a name in front
if its columns should not be called after the folder.
"""

import argparse
from collections import Counter
from pathlib import Path

from spaql.studies.paper.claims import read_claims, side_by_side
from spaql.tables import markdown


def named(argument: str) -> tuple[str, Path]:
    name, sign, folder = argument.rpartition("=")
    return (name if sign else Path(folder).name), Path(folder)


def main() -> None:
    """Print the table, and below it how many claims have which verdict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("studies", nargs="+", metavar="[NAME=]FOLDER")
    studies = {name: read_claims(folder) for name, folder in map(named, parser.parse_args().studies)}
    print(markdown(side_by_side(studies)))
    for name, claims in studies.items():
        counts = Counter(claim.verdict for claim in claims)
        print(f"{name}: " + ", ".join(f"{verdict} {n}" for verdict, n in counts.most_common()))


if __name__ == "__main__":
    main()
