"""Random plants, of everything that Numba accepts: is what `spaql.verify` proves of them what they do?

    python benchmarks/verify_fuzz.py [--first 0] [--count 10000] [--out verify-fuzz.jsonl] [--guard] [--show]

Every plant is proven and, compiled, played from proven states (`tests/plant_fuzzer.py`). A contradiction is
printed with the source of the plant. Plants that are in the file already are not examined again. With --guard
the guard of `spaql.verify` plays those that are proven as well, and its contradictions are counted apart.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import spaql
from plant_fuzzer import Outcome, examined
from spaql.verify.guard import guarded
from spaql.verify.run import searched


def guard_says(outcome: Outcome) -> str:
    """Return what the guard finds of a plant that was proven."""
    given, plant = outcome.case, outcome.case.plant
    levels = 5 if given.dims == 1 else 3
    verdict, loop = searched(given.tree(plant), plant, given.statement, seconds=0.5, levels=levels)
    try:
        guarded(verdict, loop)
    except spaql.SpaqlError as error:
        return str(error)
    return ""


def record_of(number: int, *, guard: bool) -> dict[str, Any]:
    """Return what is found of a plant, as data."""
    began = time.process_time()
    try:
        outcome = examined(number)
    except Exception as error:  # a crash is a finding, too
        return {"number": number, "kind": "crash", "said": f"{type(error).__name__}: {error}"}
    given = outcome.case
    record: dict[str, Any] = {
        "number": number,
        "kind": outcome.kind,
        "features": given.features,
        "statement": given.kind,
        "proven": outcome.proven,
        "seconds": round(time.process_time() - began, 3),
    }
    if outcome.said:
        record["said"] = outcome.said
    if outcome.kind == "contradicted":
        record["source"] = given.source
    if guard and outcome.proven > 0.0 and outcome.kind != "refused by Numba":
        record["guard"] = guard_says(outcome)
    return record


def summary(records: list[dict[str, Any]]) -> str:
    """Return the tables of the study."""
    kinds = Counter(record["kind"] for record in records)
    lines = [f"{count:6,}  {kind}" for kind, count in kinds.most_common()]
    wrong = [record for record in records if record["kind"] == "contradicted"]
    features = Counter(one for record in wrong for one in set(record["features"]))
    lines += ["", "contradicted plants that have a feature (a plant may have two):"]
    lines += [f"{count:6,}  {one}" for one, count in features.most_common()]
    refused = [record for record in records if record["kind"] == "refused by the tracer"]
    reasons = Counter(reason(record["said"]) for record in refused)
    lines += ["", "reasons of the tracer:"]
    lines += [f"{count:6,}  {one}" for one, count in reasons.most_common(20)]
    if any("guard" in record for record in records):
        said = [bool(record.get("guard")) for record in wrong]
        lines += ["", f"{sum(said)} of the {len(wrong)} contradictions are found by the guard, too"]
        other = [record["number"] for record in records if record.get("guard") and record not in wrong]
        lines += [f"found by the guard alone: {other or 'none'}"]
    return "\n".join(lines)


def reason(said: str) -> str:
    """Return a refusal without the place."""
    return re.sub(r"^.*?line \d+( \(`.*?`\))?: ", "", said)[:90]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=Path("verify-fuzz.jsonl"))
    parser.add_argument("--guard", action="store_true")
    parser.add_argument("--show", action="store_true", help="print the source of what is contradicted")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    records = [json.loads(line) for line in asked.out.read_text().splitlines()] if asked.out.exists() else []
    done = {record["number"] for record in records}
    began = time.process_time()
    todo = [n for n in range(asked.first, asked.first + asked.count) if n not in done]
    with asked.out.open("a", encoding="utf-8") as file:
        for number in todo:
            record = record_of(number, guard=asked.guard)
            records.append(record)
            file.write(json.dumps(record) + "\n")
            file.flush()
            if record["kind"] in ("contradicted", "crash"):
                print(f"{number}: {record['kind']}: {record['said']}", flush=True)
                if asked.show:
                    print(record.get("source", ""), flush=True)
    print(summary(records))
    spent = time.process_time() - began
    speed = len(todo) / max(spent, 1e-9)
    print(f"\n{len(todo):,} plants in {spent:.0f} s of processor time, {speed:.1f} a second")


if __name__ == "__main__":
    main()
