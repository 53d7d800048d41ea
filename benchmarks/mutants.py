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
NUMBERS = [
    0, 1, -1, 2, 3, 7, 17, 255, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 10**18, -(10**18), 10**30,
    0.5, -0.0, 1e-308, 1e308, -1e308, "nan", "inf", "1e5", "", None, True, [], {}, [1], {"n": 3},
    "O", "U9", "box",
]  # fmt: skip
BYTES = [0, 1, 0x7F, 0x80, 0xFF]


def mutate_bytes(content: bytearray, others: list[bytes], rng: random.Random) -> bytearray:
    """Change, cut, double or swap bytes."""
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(len(content) + 1)
        kind = rng.randrange(8)
        if not content or kind == 0:
            del content[at:]
        elif kind == 1:
            del content[at : at + rng.choice((1, 2, 4, 8, 64))]
        elif kind == 2:
            content[at:at] = content[at : at + rng.choice((1, 8, 64))]
        elif kind == 3:
            other = rng.choice(others)
            there, n = rng.randrange(len(other)), rng.choice((1, 8, 64, 1024))
            content[at : at + n] = other[there : there + n]
        elif kind == 4:
            number = rng.choice([x for x in NUMBERS if type(x) is int and -(2**63) <= x < 2**63])
            content[at : at + 8] = struct.pack("<q", number)
        elif kind == 5:
            content[at : at + 8] = struct.pack(
                "<d", rng.choice((float("nan"), float("inf"), -1.0, 1e308, -0.0))
            )
        elif at < len(content):
            content[at] = rng.choice(BYTES) if kind == 6 else content[at] ^ (1 << rng.randrange(8))
    return content


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the paths to all values inside a JSON value."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


def change_json(value: Any, rng: random.Random) -> None:
    """Replace, remove, double or rename something inside a JSON value."""
    path = rng.choice(places(value))
    for key in path[:-1]:
        value = value[key]
    key, kind = path[-1], rng.randrange(8)
    if kind == 0:
        del value[key]
    elif kind == 1 and isinstance(value, dict):
        value[f"{key}x"] = value.pop(key)
    elif kind == 2 and isinstance(value[key], list):
        value[key] = value[key] * rng.choice((0, 2, 3))
    elif kind == 3 and isinstance(value[key], int | float) and not isinstance(value[key], bool):
        value[key] = rng.choice((value[key] + 1, value[key] - 1, -value[key], value[key] * 2, value[key] / 2))
    else:
        value[key] = json.loads(json.dumps(rng.choice(NUMBERS)))  # a list of its own


def mutate_inside(content: bytes, rng: random.Random) -> bytes:
    """Change the JSON of a model file: its settings, or the types, shapes and places of its arrays."""
    size = int.from_bytes(content[HEAD : HEAD + 8], "little")
    header = json.loads(content[HEAD + 8 : HEAD + 8 + size])
    settings = json.loads(header["__metadata__"]["spaql"])
    for _ in range(rng.choice((1, 1, 2, 5))):
        if rng.random() < 0.7:
            change_json(settings, rng)
        else:
            entry = header[rng.choice([name for name in header if name != "__metadata__"])]
            if rng.random() < 0.3:
                entry["dtype"] = rng.choice(("F64", "I64", "U64", "F32", "I32", "BOOL", "U8", "BF16", "C64"))
            else:
                try:
                    change_json(entry, rng)
                except (KeyError, IndexError):
                    continue
    header["__metadata__"]["spaql"] = json.dumps(settings)
    text = json.dumps(header).encode()
    return content[:HEAD] + len(text).to_bytes(8, "little") + text + content[HEAD + 8 + size :]


def mutate_array(content: bytes, rng: random.Random) -> bytes:
    """Give an array of a model file another size, and maybe another type; all else is as it should be."""
    document = archive.loads(content)
    name = rng.choice(sorted(document.arrays))
    array, shape = document.arrays[name], list(document.arrays[name].shape)
    if shape:
        shape[rng.randrange(len(shape))] = rng.choice((0, 1, 2, 5, 100, 10_000))
    kind = array.dtype if rng.random() < 0.5 else rng.choice("?bBhHiIqQefd")
    swollen = np.resize(array, shape) if np.prod(shape) <= 40_000 else array
    return archive.dumps(document.data, document.arrays | {name: swollen.astype(kind)})


def with_hash(content: bytes) -> bytes:
    return content[:8] + hashlib.sha256(content[HEAD:]).digest() + content[HEAD:]


def mutant_of(files: list[bytes], rng: random.Random) -> tuple[bytes, bool]:
    """Give a mutated model file, and whether its hash is right."""
    content, kind = rng.choice(files), rng.randrange(5)
    if kind == 0:
        return bytes(mutate_bytes(bytearray(content), files, rng)), False
    if kind == 1:
        body = mutate_bytes(bytearray(content[HEAD:]), files, rng)
        return with_hash(content[:HEAD] + bytes(body)), True
    if kind == 2:
        return mutate_array(content, rng), True
    return with_hash(mutate_inside(content, rng)), True


def mutate_text(files: list[bytes], rng: random.Random) -> tuple[bytes, bool]:
    """Change a text: single bytes, or a number for another."""
    content = rng.choice(files)
    if rng.random() < 0.5:
        return bytes(mutate_bytes(bytearray(content), files, rng)), True
    found = list(re.finditer(rb"-?[0-9.]+|\"[^\"]*\"|\w+", content))
    for match in sorted(
        rng.sample(found, min(len(found), rng.choice((1, 1, 2, 4)))), key=lambda m: -m.start()
    ):
        word = json.dumps(rng.choice(NUMBERS)).encode()
        content = content[: match.start()] + word + content[match.end() :]
    return content, True
