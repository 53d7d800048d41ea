"""Mutants: files with something changed in them, by chance."""

from __future__ import annotations

import hashlib
import json
import random
import re
import struct
from typing import Any

import numpy as np

from spaql import archive

HEAD = 40
NUMBERS = json.loads(
    "[0, 1, -1, 2, 3, 7, 17, 255, 2147483647, 2147483648, 4294967296, 9007199254740992, 9223372036854775807,"
    "9223372036854775808, 1000000000000000000, -1000000000000000000, 1000000000000000000000000000000,"
    '0.5, -0.0, 1e-308, 1e308, -1e308, "nan", "inf", "1e5", "", null, true, [], {}, [1], {"n": 3}, "O", "U9",'
    '"box"]'
)


def mutate_bytes(plain: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """Change, cut, double or swap bytes."""
    content = bytearray(plain)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(len(content) + 1)
        n = rng.choice((1, 8, 64, 1024))
        other = rng.choice(others)
        there = rng.randrange(len(other))
        kind = rng.randrange(8)
        whole = rng.choice((-1, 0, 2**31, 2**32, 2**53, 2**63 - 1, -(10**18)))
        if not content or kind == 0:
            del content[at:]
        elif kind == 1:
            del content[at : at + n]
        elif kind == 2:
            content[at:at] = content[at : at + n]
        elif kind == 3:
            content[at : at + n] = other[there : there + n]
        elif kind == 4:
            content[at : at + 8] = struct.pack("<q", whole)
        elif kind == 5:
            content[at : at + 8] = struct.pack("<d", rng.choice((np.nan, np.inf, -1.0, 1e308, -0.0)))
        elif at < len(content):
            content[at] = (
                rng.choice(b"\0\1\x7f\x80\xff") if kind == 6 else content[at] ^ (1 << rng.randrange(8))
            )
    return bytes(content)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the paths to all values inside a JSON value."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


def change_json(value: Any, rng: random.Random) -> None:
    """Replace, remove, double or rename something inside a JSON value."""
    *way, key = rng.choice(places(value))
    for inner in way:
        value = value[inner]
    old = value[key]
    kind = rng.randrange(8)
    if kind == 0:
        del value[key]
    elif kind == 1 and isinstance(value, dict):
        value[f"{key}x"] = value.pop(key)
    elif kind == 2 and isinstance(old, list):
        value[key] = old * rng.choice((0, 2, 3))
    elif kind == 3 and type(old) in (int, float):
        value[key] = rng.choice((old + 1, old - 1, -old, old * 2, old / 2))
    else:
        value[key] = json.loads(json.dumps(rng.choice(NUMBERS)))  # a list of its own


def mutate_inside(content: bytes, rng: random.Random) -> bytes:
    """Change the JSON of a model file: its settings, or the types, shapes and places of its arrays."""
    body = HEAD + 8 + int.from_bytes(content[HEAD : HEAD + 8], "little")
    header = json.loads(content[HEAD + 8 : body])
    about = header.pop("__metadata__")
    settings = json.loads(about["spaql"])
    for _ in range(rng.choice((1, 1, 2, 5))):
        entry = rng.choice(list(header.values()))
        if rng.random() < 0.7:
            change_json(settings, rng)
        elif rng.random() < 0.3:
            entry["dtype"] = rng.choice(("F64", "I64", "U64", "F32", "I32", "BOOL", "U8", "BF16", "C64"))
        elif entry:
            change_json(entry, rng)
    about["spaql"] = json.dumps(settings)
    text = json.dumps({"__metadata__": about} | header).encode()
    return content[:HEAD] + len(text).to_bytes(8, "little") + text + content[body:]


def mutate_array(content: bytes, rng: random.Random) -> bytes:
    """Give an array of a model file another size, and maybe another type; all else is as it should be."""
    document = archive.loads(content)
    name = rng.choice(sorted(document.arrays))
    array = document.arrays[name]
    shape = list(document.arrays[name].shape)
    if shape:
        shape[rng.randrange(len(shape))] = rng.choice((0, 1, 2, 5, 100, 10_000))
    kind = array.dtype if rng.random() < 0.5 else rng.choice("?bBhHiIqQefd")
    swollen = np.resize(array, shape) if np.prod(shape) <= 40_000 else array
    return archive.dumps(document.data, document.arrays | {name: swollen.astype(kind)})


def with_hash(content: bytes) -> bytes:
    return content[:8] + hashlib.sha256(content[HEAD:]).digest() + content[HEAD:]


def mutant_of(files: list[bytes], rng: random.Random) -> tuple[bytes, bool]:
    """Give a mutated model file, and whether its hash is right."""
    content = rng.choice(files)
    kind = rng.randrange(5)
    if kind == 0:
        return mutate_bytes(content, files, rng), False
    if kind == 1:
        return with_hash(content[:HEAD] + mutate_bytes(content[HEAD:], files, rng)), True
    return (mutate_array(content, rng) if kind == 2 else with_hash(mutate_inside(content, rng))), True


def mutate_text(files: list[bytes], rng: random.Random) -> tuple[bytes, bool]:
    """Change a text: single bytes, or some numbers and words."""
    content = rng.choice(files)
    if rng.random() < 0.5:
        return mutate_bytes(content, files, rng), True
    share = rng.choice((1, 1, 2, 4)) / len(re.findall(rb"\w+", content))

    def other(found: re.Match[bytes]) -> bytes:
        return json.dumps(rng.choice(NUMBERS)).encode() if rng.random() < share else found[0]

    return re.sub(rb"-?[0-9.]+|\"[^\"]*\"|\w+", other, content), True
