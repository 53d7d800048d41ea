"""What agents and designs show of their controllers."""

from __future__ import annotations

import os
from typing import Any

from spaql.archive import write_atomically
from spaql.controllers import controller_of, text
from spaql.entry_points import Pictured, load_hook


class Readable(Pictured):
    """A source of a controller."""

    def show(self: Any, digits: int | None = 4) -> None:
        """Print the rules of the controller, rounded; with all digits for None (see `spaql.rules`)."""
        print(text(controller_of(self), digits))

    def page(self, path: str | os.PathLike[str]) -> None:
        """Write a page to play with: the tree, its map and the moving plant, in one file of HTML."""
        write_atomically(path, load_hook("page")(None, self).encode())
