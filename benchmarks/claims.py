"""The paper's claims, as judged in one study or in several, side by side.

    python benchmarks/claims.py paper
    python benchmarks/claims.py authors=paper text=paper-text > claims.md

Each argument is the folder of a study that `spaql paper --out FOLDER` has reported on, with a name in front
if its columns should not be called after the folder.
"""

from collections import Counter
from pathlib import Path

from spaql.plugins.paper.claims import read_claims, side_by_side
from studies import parser, show


def main() -> None:
    """Print the table, and below it how many claims have which verdict."""
    options = parser(__doc__)
    options.add_argument("studies", nargs="+", metavar="[NAME=]FOLDER")
    named = [argument.rpartition("=") for argument in options.parse_args().studies]
    studies = {name or Path(folder).name: read_claims(folder) for name, _, folder in named}
    show(side_by_side(studies))
    for name, found in studies.items():
        counts = Counter(claim.verdict for claim in found)
        print(f"{name}: " + ", ".join(f"{verdict} {n}" for verdict, n in counts.most_common()))


if __name__ == "__main__":
    main()
