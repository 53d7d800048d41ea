"""The paper's claims, as judged in one study or in several, side by side.

    python benchmarks/claims.py paper
    python benchmarks/claims.py authors=paper text=paper-text > claims.md

Each argument is the folder of a study that `spaql paper --out FOLDER` has reported on, with a name in front
if its columns should not be called after the folder.
"""

import csv
import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from spaql.errors import SettingError
from spaql.plugins.paper.claims import Claim
from studies import parser, show

CLAIMS_FILE = Path("tables", "claims.csv")
"""The path of the claims in the folder of a study."""


def read_claims(folder: str | Path) -> list[Claim]:
    """Read the judged claims of a study, from the folder of its report."""
    file = Path(folder) / CLAIMS_FILE
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            return [Claim(**row) for row in csv.DictReader(lines)]
    except FileNotFoundError as error:
        raise SettingError(f"There is no {file}: make the report first, by `spaql paper`.") from error
    except TypeError as error:
        names = ", ".join(field.name for field in dataclasses.fields(Claim))
        raise SettingError(f"{file} is no table of claims, which has the columns {names}.") from error


def side_by_side(studies: Mapping[str, Sequence[Claim]]) -> list[dict[str, str]]:
    """Return rows of a table with the verdicts of studies side by side, each under its name.

    The columns of a study are empty for a claim that it does not judge.
    """
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for claims in studies.values():
        for claim in claims:
            row = {"claim": claim.claim, "where": claim.where, "criterion": claim.criterion}
            for column in ("verdict", "measured"):
                row |= {f"{column}, {name}": "" for name in studies}
            rows.setdefault((claim.claim, claim.where, claim.criterion), row)
    for name, claims in studies.items():
        for claim in claims:
            row = rows[claim.claim, claim.where, claim.criterion]
            row |= {f"verdict, {name}": claim.verdict, f"measured, {name}": claim.measured}
    return list(rows.values())


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
