"""C by MISRA C:2012, as far as the misra addon of cppcheck checks it, and the deviations."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from spaql.errors import SettingError, SpaqlError
from spaql.export.processes import MissingToolError, completed, version_of

STANDARDS = ("misra",)
DEVIATIONS = {
    "Rule 1.2 (advisory)": "for GCC, a pragma keeps products and sums from being fused.",
    "Rule 2.5 (advisory)": "macros of the header are for the program that includes it; each is marked there.",
    "Directive 4.6 (advisory)": "double, float and int go by these names; the width of floats is checked.",
}
"""Rules that exported code does not follow, with the reasons."""
# What the headers of the compiler define; cppcheck reads none of them.
_DEFINED = ("DBL_MANT_DIG=53", "FLT_MANT_DIG=24", "FLT_EVAL_METHOD=0")
_UNDEFINED = ("__FAST_MATH__", "__FINITE_MATH_ONLY__", "__AVR__", "__clang__", "__cplusplus")
_SUPPRESSED = "/* cppcheck-suppress misra-c2012-2.5 */"


def checked_standard(standard: str | None) -> str | None:
    """Return a coding standard, if there is one of this name."""
    if standard is not None and standard not in STANDARDS:
        raise SettingError(f"standard is {standard!r}, and must be 'misra', or left out.")
    return standard


def reviewed(name: str, header: Iterable[str], source: Iterable[str]) -> dict[str, bytes]:
    """Return the files of a controller for a review, by name, with the statement of compliance."""
    texts = {f"{name}.h": _with_marks(header), f"{name}.c": _without_unused_macros(source)}
    files = {file: ("\n".join(lines) + "\n").encode() for file, lines in texts.items()}
    return {**files, f"{name}_misra.md": _statement(name)}


def _with_marks(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a header, with its deviations marked for cppcheck."""
    for line in lines:
        if re.match(r"#define \w+_(BITS|SAMPLE_TIME) ", line):
            yield _SUPPRESSED
        yield line


def _without_unused_macros(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a source without macros that only they define."""
    kept = list(lines)
    used = "\n".join(line for line in kept if not line.startswith("#define "))
    for line in kept:
        macro = re.match(r"#define (\w+)\(", line)
        if macro is None or macro[1] in used:
            yield line


def check_misra(folder: Path, name: str) -> None:
    """Raise if cppcheck finds a violation of a rule in the files of a controller in a folder."""
    words = ["cppcheck", "--addon=misra", "--std=c99", "--inline-suppr", "--quiet", "--error-exitcode=1"]
    words += ["--template={file}:{line}: {id}", "--suppress=missingIncludeSystem"]
    words += [f"-D{macro}" for macro in _DEFINED] + [f"-U{macro}" for macro in _UNDEFINED]
    checked = completed([*words, f"{name}.c"], folder)
    said = checked.stderr.decode(errors="replace").strip().splitlines()
    if checked.returncode or said:
        raise SpaqlError("\n".join(["The exported C violates rules of MISRA C:2012:", *said[:5]]))


def _version() -> str:
    """Return the name and version of cppcheck."""
    if shutil.which("cppcheck") is None:
        raise MissingToolError("cppcheck is not installed, which the standard 'misra' needs: install it.")
    return version_of("cppcheck")


def _statement(name: str) -> bytes:
    """Return the statement of compliance: what was checked, and the deviations."""
    lines = [
        f"# {name}: MISRA C:2012",
        "",
        f"{_version()} with its misra addon finds no violation in {name}.c and {name}.h. The addon of",
        "version 2.10 checks 129 of the 156 rules of MISRA C:2012 and none of the directives, and reads no",
        "headers of the compiler. This is no certificate: a review looks at what a tool cannot decide.",
        "",
        "## Deviations",
        "",
        *(f"- {rule}: {reason}" for rule, reason in DEVIATIONS.items()),
    ]
    return ("\n".join(lines) + "\n").encode()
