"""One instance of an FMU that is simulated; its errors name the variable and the time."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import count
from multiprocessing import util
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from spaql.errors import BadEnvironmentError
from spaql.plugins.fmu.description import Description, Variable, fmpy_module, read_description

_FATAL = 4
_EXTRACTED: dict[tuple[str, int, int], str] = {}
"""Folders of extracted FMUs, by path, time of change and size."""
_SIMULATIONS: WeakValueDictionary[int, FmuSimulation] = WeakValueDictionary()
_KEYS = count(1)
_CALLED: list[int] = [0]
"""The key of the simulation that was called last: not every FMU says which instance sends a message."""


@cache
def _logger(fmi2: Any) -> Any:
    """Return the logger of all FMUs, which is never freed.

    FMPy's native function that fills numbers into messages knows one logger for the whole process, the last
    one that it was given.
    """

    def receive(key: int | None, *arguments: Any) -> None:
        simulation = _SIMULATIONS.get(key or _CALLED[0])
        if simulation is None:
            fmi2.printLogMessage(key, *arguments)
        else:
            simulation._log(*arguments)

    return fmi2.fmi2CallbackLoggerTYPE(receive)


class FmuSimulation:
    """An FMU between the beginning and the end of an episode.

    Every episode has a new instance.

    Parameters
    ----------
    file
        The FMU.
    step_size
        Seconds of a step.
    """

    def __init__(self, file: str, step_size: float) -> None:
        self._arguments = file, step_size
        self.description: Description = read_description(file)
        self._folder = _extracted(Path(file))
        self._slave: Any = None
        self._is_live = False
        self._status = 0
        self._messages: deque[str] = deque(maxlen=3)
        self._steps = 0
        self._key = next(_KEYS)
        _SIMULATIONS[self._key] = self

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what it was made of: a copy has not begun."""
        return FmuSimulation, self._arguments

    def __del__(self) -> None:
        if not sys.is_finalizing():
            with suppress(Exception):
                self.close()

    @property
    def time(self) -> float:
        """Seconds since the start of the simulation."""
        return self.description.start_time + self._steps * self._arguments[1]

    def begin(self, values: Mapping[str, float]) -> None:
        """Begin an episode with these values of parameters, start values and inputs."""
        _CALLED[0] = self._key
        self._new_instance()
        self._initialise(values)

    def set(self, values: Mapping[str, float]) -> None:
        """Set variables by name."""
        _CALLED[0] = self._key
        for access, group in self._grouped(values).items():
            method = getattr(self._slave, f"set{access}")
            numbers = [_value(one, values[one.name]) for one in group]
            try:
                method([one.reference for one in group], numbers)
            except Exception as error:
                failing = _failing(method, group, numbers)
                what = ", ".join(f"{one.name} = {values[one.name]:g}" for one in failing)
                raise self._failed(f"{what} cannot be set", error) from error

    def get(self, names: Sequence[str]) -> list[float]:
        """Return the values of variables."""
        _CALLED[0] = self._key
        found: dict[str, float] = {}
        for access, group in self._grouped(names).items():
            method = getattr(self._slave, f"get{access}")
            try:
                numbers = method([one.reference for one in group])
            except Exception as error:
                what = ", ".join(one.name for one in _failing(method, group))
                raise self._failed(f"{what} cannot be read", error) from error
            found.update((one.name, float(x)) for one, x in zip(group, numbers, strict=True))
        return [found[name] for name in names]

    def step(self) -> None:
        """Simulate a step."""
        _CALLED[0] = self._key
        size = self._arguments[1]
        try:
            ends = self._slave.doStep(currentCommunicationPoint=self.time, communicationStepSize=size)
        except Exception as error:
            raise self._failed(f"the step to {self.time + size:g} s was not computed", error) from error
        if ends is not None and ends[1]:
            raise self._failed("the FMU ended the simulation by itself", None)
        self._steps += 1

    def close(self) -> None:
        """End the instance."""
        if self._is_live and self._status < _FATAL:  # after a fatal error nothing may be called
            with suppress(Exception):
                if self._status == 0:
                    self._slave.terminate()
            with suppress(Exception):
                free = getattr(self._slave, f"fmi{self.description.version}FreeInstance")
                free(self._slave.component)  # FMPy's own method unloads the library as well
        self._is_live = False
        self._status = 0

    def failure(self, what: str) -> BadEnvironmentError:
        """Return an error with the time."""
        said = f" The FMU's log: {'; '.join(self._messages)}." if self._messages else ""
        return BadEnvironmentError(f"{self.description.file} at {self.time:g} s: {what}.{said}")

    def _failed(self, what: str, error: Exception | None) -> BadEnvironmentError:
        self._status = int(getattr(error, "status", 3))
        return self.failure(f"{what} ({str(error).rstrip('.')})" if error is not None else what)

    def _grouped(self, names: Any) -> dict[str, list[Variable]]:
        """Return variables by the type that FMPy's methods are named after."""
        groups: dict[str, list[Variable]] = {}
        for name in names:
            one = self.description.variables[name]
            integer = "Integer" if self.description.version == 2 else "Int64"
            groups.setdefault(integer if one.type == "Enumeration" else one.type, []).append(one)
        return groups

    def _new_instance(self) -> None:
        self.close()
        self._messages.clear()
        try:
            if self._slave is None:
                self._slave = self._loaded()
            if self.description.version == 2:
                self._slave.instantiate(callbacks=self._callbacks)
            else:
                self._slave.instantiate(logMessage=self._log)
        except Exception as error:
            raise self._failed("no instance could be made", error) from error
        self._is_live = True
        self._steps = 0

    def _loaded(self) -> Any:
        """Load the library of this platform; returns FMPy's object with its functions."""
        fmpy = fmpy_module()
        model = self.description.model
        two = self.description.version == 2
        platform = fmpy.platform if two else fmpy.platform_tuple
        if not (Path(self._folder) / "binaries" / platform).is_dir():
            there = sorted(path.name for path in (Path(self._folder) / "binaries").glob("*"))
            raise BadEnvironmentError(
                f"it has no binary for {platform}, but for {', '.join(there) or 'no platform at all'}"
            )
        kind = fmpy.fmi2.FMU2Slave if two else fmpy.fmi3.FMU3Slave
        if two:
            self._callbacks = self._fmi2_callbacks(fmpy)
        return kind(
            guid=model.guid, unzipDirectory=self._folder, modelIdentifier=model.coSimulation.modelIdentifier
        )

    def _fmi2_callbacks(self, fmpy: Any) -> Any:
        fmi2 = fmpy.fmi2
        made = fmi2.fmi2CallbackFunctions()
        made.logger = _logger(fmi2)
        made.allocateMemory = fmi2.fmi2CallbackAllocateMemoryTYPE(fmpy.calloc)
        made.freeMemory = fmi2.fmi2CallbackFreeMemoryTYPE(fmpy.free)
        made.componentEnvironment = self._key
        with suppress(Exception):  # it fills numbers into the FMU's messages
            from ctypes import byref

            from fmpy.logging import addLoggerProxy

            addLoggerProxy(byref(made))
        return made

    def _log(self, *arguments: Any) -> None:
        """Keep a message of the FMU for the next error."""
        message = arguments[-1]
        self._messages.append(" ".join((message or b"").decode(errors="replace").split()).rstrip("."))

    def _initialise(self, values: Mapping[str, float]) -> None:
        start = self.description.start_time
        slave = self._slave
        try:
            if self.description.version == 2:
                slave.setupExperiment(startTime=start)
        except Exception as error:
            raise self._failed("the simulation cannot be set up", error) from error
        self.set(values)
        try:
            if self.description.version == 2:
                slave.enterInitializationMode()
            else:
                slave.enterInitializationMode(startTime=start)
            slave.exitInitializationMode()
        except Exception as error:
            given = ", ".join(f"{name} = {x:g}" for name, x in values.items())
            with_these = f" with {given}" if given else ""
            raise self._failed(f"it cannot be initialised{with_these}", error) from error


def _failing(method: Any, group: Sequence[Variable], *numbers: Sequence[Any]) -> Sequence[Variable]:
    """Return the variables for which a method fails on their own; all, if it does for none."""
    failing = []
    for i, one in enumerate(group):
        try:
            method([one.reference], *([values[i]] for values in numbers))
        except Exception:
            failing.append(one)
    return failing or group


def _value(one: Variable, x: float) -> float | int | bool:
    """Return a number as the type of a variable."""
    return float(x) if one.is_real else bool(x) if one.type == "Boolean" else int(x)


def _extracted(file: Path) -> str:
    """Return the folder with the files of an FMU, which is extracted once in a process."""
    found = file.stat()
    key = str(file.resolve()), found.st_mtime_ns, found.st_size
    if key not in _EXTRACTED:
        folder = tempfile.mkdtemp(prefix="spaql-fmu-")
        # At the end of worker processes too, where atexit does nothing; never in a fork of this one.
        remove = util.Finalize(None, shutil.rmtree, (folder, True), exitpriority=0)
        try:
            fmpy_module().extract(file, folder)
        except Exception as error:  # of zipfile or FMPy: the archive may hold anything
            remove()
            why = str(error).rstrip(".")
            raise BadEnvironmentError(f"{file} cannot be unpacked: {why}.") from error
        _EXTRACTED[key] = folder
    return _EXTRACTED[key]
