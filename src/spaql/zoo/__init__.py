"""The zoo: trained controllers that ship with the package, and what was measured of each."""

from spaql.zoo.entries import Beside, Entry, content, entries, entry, load, names, train

__all__ = ["Beside", "Entry", "content", "entries", "entry", "load", "names", "train"]
