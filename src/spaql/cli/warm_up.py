"""`spaql warm-up`: compile in advance."""

from __future__ import annotations

import time
from contextlib import closing

from spaql.cli.arguments import quiet_option
from spaql.cli.command import command
from spaql.cli.report import Report
from spaql.formatting import counted, duration


@command("what was compiled")
@quiet_option
def warm_up(quiet: bool) -> Report:
    """Compile the kernels of PlanTree before the first training.

    Numba compiles spaql for this machine on first use and caches the result, for the user or in the
    package's own folder. This command prepares an installation, an image or a classroom in advance.
    """
    from spaql.agents.progress import Compiling
    from spaql.kernels.warm_up import are_warm, kernels
    from spaql.kernels.warm_up import warm_up as compile_kernels

    began = time.perf_counter()
    new = not are_warm(kernels())
    with closing(Compiling(show=not quiet)) as compiling:
        compile_kernels(kernels(), compiling)
    count = len(kernels())
    seconds = time.perf_counter() - began
    data = {"kernels": count, "compiled": new, "seconds": seconds}
    done = f"{counted(count, 'kernel')} {'compiled' if new else 'were already compiled'}"
    return Report(data, f"{done}: {duration(seconds)}.")
