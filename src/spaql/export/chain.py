"""A chain of hashes from the plant and the settings of a training to each exported file.

A link has the SHA-256 of what it stands for, and one of that together with the link before it. So the last
link changes with anything before it: whoever keeps it can tell whether a file, or what it was made from, is
another one. It is no signature.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spaql.errors import ArchiveError
from spaql.export.equivalence import Equivalence
from spaql.policy.resolve import PathLike
from spaql.problems.plant_hash import differences
from spaql.values import plain

FORMAT = "spaql hash chain 1"
_MEANING = (
    "sha256 is that of a file, of bytes, or of content as JSON without spaces, keys in their order. link is "
    "the SHA-256 of the link before it (empty for the first), kind, name and sha256, a line end after each."
)


@dataclass(frozen=True)
class Link:
    """What a link stands for, by its hash."""

    kind: str
    """"data" for content that the chain holds, "origin" for what is elsewhere, "file" for one beside it."""
    name: str
    sha256: str
    content: Any = None
    """Plain data, of the kind "data"."""

    def after(self, previous: str) -> str:
        """Return the hash of this link and the one before it."""
        return _sha256("".join(f"{one}\n" for one in (previous, self.kind, self.name, self.sha256)).encode())


@dataclass(frozen=True)
class CheckedLink:
    """What was found of a link."""

    name: str
    outcome: str
    """"unchanged", "changed", or "not compared"."""
    reason: str = ""
    """Why it counts as changed, or was not compared."""


def data_link(name: str, content: Any) -> Link:
    """Return a link to plain data, which the chain holds."""
    return Link("data", name, _sha256(_canonical(plain(content))), plain(content))


def origin_link(name: str, content: bytes) -> Link:
    """Return a link to bytes that are not in the folder of the chain, such as the model file."""
    return Link("origin", name, _sha256(content))


def chain_of(origin: Sequence[Link], found: Equivalence) -> tuple[bytes, str]:
    """Return the chain of an export as JSON, and its last link.

    Parameters
    ----------
    origin
        What the controller was made from, the first first.
    found
        The record of the equivalence check, with the hashes of the files.
    """
    kept = ("target", "number", "tool", "points", "safe_action", "tolerance")
    made = json.loads(found.to_json())
    files = [Link("file", file, digest) for file, digest in found.files.items()]
    links = [*origin, data_link("export", {name: made[name] for name in kept}), *files]
    hashes = list(_hashes(links))
    return _written(links, hashes), hashes[-1]


def check_chain(
    path: PathLike, origin: Sequence[Link] | None = None, last: str | None = None
) -> list[CheckedLink]:
    """Return what became of each link of a chain, and of the files in its folder.

    Parameters
    ----------
    path
        A file that `spaql export --chain` has written, such as `controller_chain.json`.
    origin
        What the controller was made from, as `spaql.agents.origin.origin_of` returns it for a model file.
        Without it, the model file and the policy are not compared.
    last
        The last link, if it was kept elsewhere: a chain that was written anew has another one.
    """
    path = Path(path)
    content, links, stored = _read(path)
    given = None if origin is None else {link.name: link for link in origin}
    found, previous = list[CheckedLink](), ""
    for link, kept in zip(links, stored, strict=True):
        checked = _checked(link, path.parent, given)
        if link.after(previous) != kept and checked.outcome != "changed":
            checked = CheckedLink(link.name, "changed", "its link is not that of its hash and the one before")
        found.append(checked)
        previous = kept
    if last is not None and last != previous:
        found.append(CheckedLink("last link", "changed", f"it is {previous}"))
    if _written(links, stored) != content and all(one.outcome != "changed" for one in found):
        found.append(CheckedLink(path.name, "changed", "its text is not as it was written"))
    return found


def _read(path: Path) -> tuple[bytes, list[Link], list[str]]:
    """Return the bytes of a chain, its links, and the hash that is stored with each."""
    try:
        content = path.read_bytes()
        rows = json.loads(content)["links"]
        links = [Link(row["kind"], row["name"], row["sha256"], row.get("content")) for row in rows]
        stored = [str(row["link"]) for row in rows]
    except OSError as error:
        raise ArchiveError(f"Cannot read {path}: {error.strerror}.") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ArchiveError(f"{path} is not a chain of hashes that spaql has written ({error!r}).") from error
    if not links:
        raise ArchiveError(f"{path} is a chain of hashes without a link.")
    return content, links, stored


def _checked(link: Link, folder: Path, given: dict[str, Link] | None) -> CheckedLink:
    """Return what became of what a link stands for."""
    if link.kind == "file":
        return _checked_file(link, folder)
    if link.kind not in ("data", "origin"):
        return CheckedLink(link.name, "changed", f"there is no kind {link.kind!r} of links")
    if link.kind == "data" and _sha256(_canonical(link.content)) != link.sha256:
        return CheckedLink(link.name, "changed", "its content has another hash")
    now = (given or {}).get(link.name, link)
    for one in (link, now):
        if isinstance(one.content, dict) and "not_hashed" in one.content:
            return CheckedLink(link.name, "not compared", str(one.content["not_hashed"]))
    if now.sha256 != link.sha256:
        return CheckedLink(link.name, "changed", _difference(link.content, now.content))
    if given is None and link.kind == "origin":
        return CheckedLink(link.name, "not compared", "the model file was not given")
    return CheckedLink(link.name, "unchanged")


def _difference(kept: Any, now: Any) -> str:
    """Return in what the hashes of a plant's equations differ, or that something does."""
    equations = [one.get("equations", {}) if isinstance(one, dict) else {} for one in (kept, now)]
    if other := differences(*equations):
        return f"what was given differs in {', '.join(other)}"
    return "what was given has another hash"


def _checked_file(link: Link, folder: Path) -> CheckedLink:
    if Path(link.name).name != link.name:
        return CheckedLink(link.name, "changed", "it is not the name of a file in this folder")
    try:
        digest = _sha256((folder / link.name).read_bytes())
    except OSError as error:
        return CheckedLink(link.name, "changed", f"it cannot be read: {error.strerror}")
    if digest != link.sha256:
        return CheckedLink(link.name, "changed", "the file has another hash")
    return CheckedLink(link.name, "unchanged")


def _hashes(links: Sequence[Link]) -> Iterator[str]:
    """Yield the hash of each link, that of the one before it included."""
    previous = ""
    for link in links:
        previous = link.after(previous)
        yield previous


def _written(links: Sequence[Link], hashes: Sequence[str]) -> bytes:
    """Return a chain as JSON."""
    rows = []
    for link, kept in zip(links, hashes, strict=True):
        row: dict[str, Any] = {"kind": link.kind, "name": link.name}
        row |= {"content": link.content} if link.kind == "data" else {}
        rows.append(row | {"sha256": link.sha256, "link": kept})
    data = {"format": FORMAT, "meaning": _MEANING, "links": rows}
    return (json.dumps(data, indent=2) + "\n").encode()


def _canonical(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":"), allow_nan=False).encode()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
