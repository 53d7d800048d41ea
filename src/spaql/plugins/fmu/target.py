"""A controller as an FMU, compared with the policy by running it in FMPy."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from spaql.errors import SettingError
from spaql.export.language import Source, Target
from spaql.export.languages.c import C
from spaql.export.running import FLAGS, PLAYED, SAMPLES, Player, compiled, compiler_version, driven
from spaql.plugins.fmu.description import fmpy_module
from spaql.plugins.fmu.interface import Interface, interface_of, wrapper

_FLAGS = (*FLAGS, "-shared", "-fPIC", "-fvisibility=hidden")
_DATE = (1980, 1, 1, 0, 0, 0)
"""Of all files in the archive: the same controller has the same bytes."""


class Fmu(Target):
    """One FMU for co-simulation, FMI 2.0, with its sources and a binary for this platform.

    A controller with memory is reset by fmi2Reset.
    """

    name = "FMU"
    suffix = ".fmu"

    def files(self, source: Source) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        return {f"{source.name}.fmu": _archive(interface_of(source), C().files(source))}

    def player(self, source: Source, folder: Path) -> Player:
        """Return the function that plays samples by the FMU in FMPy."""
        fmpy_module()  # raises if it is missing
        words = [sys.executable, "-P", "-B", str(Path(__file__).with_name("player.py")), f"{source.name}.fmu"]
        words += [*map(str, source.widths), str(int(source.discrete)), repr(source.sample_time or 0.0)]
        path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return driven([*words, SAMPLES, PLAYED], folder, source.played, path)

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"FMPy {version('fmpy')}, {compiler_version()}"


def _archive(interface: Interface, sources: Mapping[str, bytes]) -> bytes:
    """Return an FMU of C sources of a controller, compiled for this platform."""
    fmpy = fmpy_module()
    name = interface.name
    if "fmi2.c" in sources:
        raise SettingError("The name of an FMU cannot be fmi2: give another.")
    content = b"".join(sources[file] for file in sorted(sources))
    guid = hashlib.sha256(content + wrapper(interface, "").encode()).hexdigest()[:32]
    written = {**sources, "fmi2.c": wrapper(interface, guid).encode()}
    code = [file for file in written if file.endswith(".c")]
    with tempfile.TemporaryDirectory() as folder:
        for file, text in written.items():
            (Path(folder) / file).write_bytes(text)
        library = Path(folder) / f"{name}{fmpy.sharedLibraryExtension}"
        binary = compiled([Path(folder) / file for file in code], library, _FLAGS).read_bytes()
    files = {
        "modelDescription.xml": interface.description(guid, code).encode(),
        **{f"sources/{file}": text for file, text in written.items()},
        f"binaries/{fmpy.platform}/{library.name}": binary,
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:  # not compressed, which differs between versions of zlib
        for file, data in files.items():
            archive.writestr(zipfile.ZipInfo(file, _DATE), data)
    return made.getvalue()
