"""A word when the command ends at once: code of an environment that crashes, or calls `os._exit`.

Environments run in the process of the command, which cannot say anything after that.
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import subprocess
import sys

_WATCH = "trap exit INT TERM HUP; read end || printf '%s\\n' \"$1\" >&2"
"""What waits for the line that an orderly end sends, and finds the end of the file instead."""


def explain_sudden_end() -> None:
    """Print the line of Python that crashes, and start a shell that explains an end without a word."""
    if sys.stderr is None:
        return
    faulthandler.enable()
    if os.name != "posix":
        return
    sentence = (
        f"Error: `{' '.join(['spaql', *sys.argv[1:3]])}` ended at once: it was killed, or the code of the "
        "environment, or of a library that it uses, crashed or ended the process (os._exit)."
    )
    words = ["/bin/sh", "-c", _WATCH, "sh", sentence]
    watch = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    atexit.register(watch.communicate, b"end\n")
