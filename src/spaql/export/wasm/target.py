"""A controller as WebAssembly: the C that `c` writes, compiled by clang and compared in node."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from spaql.errors import SettingError, SpaqlError
from spaql.export.compilers import FLAGS
from spaql.export.language import Source, Target
from spaql.export.languages.c import C
from spaql.export.languages.javascript import played_in_node
from spaql.export.played import Player
from spaql.export.processes import MissingToolError, run, version_of
from spaql.export.wasm.loader import loader, module_source

# Below the data, a stack that overflows traps instead of changing numbers.
_FLAGS = (
    "--target=wasm32", *FLAGS, "-ffreestanding", "-nostdlib",
    "-Wl,--no-entry", "-Wl,--strip-all", "-Wl,--stack-first", "-Wl,-z,stack-size=16384",
)  # fmt: skip


class Wasm(Target):
    """A WebAssembly module without imports, and a JavaScript module that loads it.

    With memory there is an instance of the module for each plant.
    """

    name = "WebAssembly"
    suffix = ".wasm"

    def files(self, source: Source) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        return _module(source, C().files(source))

    def player(self, source: Source, folder: Path) -> Player:
        """Return the function that plays samples by the files in a folder, in node."""
        state = ["...controller.kept"] if source.program.state else []
        return played_in_node(source.name, self.name, folder, source.widths, state)

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return (
            f"node {version_of('node')}, compiled by {version_of('clang')}, --target=wasm32 {' '.join(FLAGS)}"
        )


def _exports(source: Source) -> list[str]:
    """Return the names that the module exports, besides its memory."""
    return ["observation", "action", "act", *(["state", "reset"] if source.program.state else [])]


def _module(source: Source, sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return a module compiled from C sources of a controller, and its loader."""
    for tool, package in (("clang", "clang"), ("wasm-ld", "lld")):
        if shutil.which(tool) is None:
            raise MissingToolError(
                f"{tool} is not installed, which compiles C to WebAssembly: install it (Debian's package is "
                f"{package})."
            )
    name = source.name
    if name == "module":
        raise SettingError("The name of a WebAssembly controller cannot be module: give another.")
    written = {**sources, "module.c": module_source(source).encode()}
    exports = [f"-Wl,--export={function}" for function in _exports(source)]
    with tempfile.TemporaryDirectory() as folder:
        for file, content in written.items():
            (Path(folder) / file).write_bytes(content)
        # Debian's clang looks for wasm-ld by a name with its version.
        words = [
            "clang",
            *_FLAGS,
            f"-fuse-ld={shutil.which('wasm-ld')}",
            *exports,
            f"{name}.c",
            "module.c",
            "-o",
            f"{name}.wasm",
        ]
        run(words, Path(folder), SpaqlError, "clang does not compile the exported controller")
        module = (Path(folder) / f"{name}.wasm").read_bytes()
    return {f"{name}.wasm": module, f"{name}.mjs": loader(source).encode()}
