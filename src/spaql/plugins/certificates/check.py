"""Checking certificates without search, by code that shares only the file format with the prover.

What a certificate claims, and what has to be checked of it, is written in docs/certificate.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql import archive
from spaql.archive import reading
from spaql.errors import ArchiveError
from spaql.plugins.certificates.check_cells import CheckedCells
from spaql.plugins.certificates.check_claim import CLOSED, CheckedClaim
from spaql.plugins.certificates.check_reached import ReachedCells
from spaql.plugins.certificates.check_tape import Arrays, Ints
from spaql.verify.verdict import percent

KIND = "certificate"


@dataclass(frozen=True)
class Check:
    """What was checked of a certificate."""

    text: str
    data: dict[str, Any]
    holds: bool
    """Whether everything that the certificate claims was confirmed."""


def load_certificate(path: str | os.PathLike[str]) -> archive.Document:
    """Return the content of a certificate; raises `ArchiveError` if the file is damaged, or none."""
    document = archive.load(path)
    if document.data.get("kind") != KIND:
        raise ArchiveError(
            f"The file holds {document.data.get('kind')!r}, not a certificate of spaql verify."
        )
    return document


def check_certificate(path: str | os.PathLike[str]) -> Check:
    """Check a certificate that `spaql verify --certificate` wrote.

    Every box of it is followed again, by another implementation of sets than the prover's. What is not
    confirmed is taken from the claim, with all that depends on it.

    Raises
    ------
    ArchiveError
        If the file is damaged, not a certificate, or one that docs/certificate.md does not describe.
    """
    document = load_certificate(path)
    with reading(KIND):
        claim, share, _ = confirmed(document.data, document.arrays)
        holds = share >= claim.share
        said = "as claimed" if holds else f"and {percent(claim.share)} are claimed"
        return Check(
            f"{claim.about}, {claim.text}.\n{'Confirmed' if holds else 'NOT confirmed as claimed:'} from "
            f"{percent(share)} of these states, {said}.",
            {
                "plant": claim.plant,
                "equations": claim.loop.equations,
                "controller": claim.loop.controller,
                "program": claim.program,
                "statement": claim.text,
                "confirmed": share,
                "claimed": claim.share,
                "holds": holds,
            },
            holds,
        )


def confirmed(
    data: Mapping[str, Any], arrays: Arrays
) -> tuple[CheckedClaim, float, NDArray[np.int32] | None]:
    """Return the claim, the share of the states that is confirmed, and the steps of each cell, -1 where not.

    There are no cells to a claim about all that the starts come to: it is confirmed, or not at all.
    """
    with np.errstate(all="ignore"):
        claim = CheckedClaim.read(data, arrays)
        if claim.kind == CLOSED:
            return claim, float(ReachedCells(claim, arrays).are_closed()), None
        cells = CheckedCells(claim, data, arrays)
        return claim, cells.share(), cells.times.ravel()


def grown(data: Mapping[str, Any], arrays: Arrays) -> Ints:
    """Return the cells that starts come to, with those that only the sets of this checker come to."""
    with np.errstate(all="ignore"):
        found = ReachedCells(CheckedClaim.read(data, arrays), arrays)
        found.grow()
    return found.cells
