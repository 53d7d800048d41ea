"""What an exported FMU declares, the model description, and its functions in C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from spaql.export.language import Source, action_numbers
from spaql.kernels.controller import HIGH, LOW
from spaql.languages import in_xml
from spaql.spaces import split_unit

_SOURCE = Path(__file__).with_name("fmi2.c")
"""The C functions of FMI 2.0 around the C of a controller, which the definitions before them name."""
_HEAD = """/* fmi2.c: the functions of FMI 2.0 (co-simulation) of {name}.
 *
 * A step reads the inputs, takes a sample of the controller, and writes the outputs.
 * Written by spaql. Do not edit: export it again.
 */
"""


@dataclass(frozen=True)
class Interface:
    """The variables of a controller in the order of their value references: inputs, outputs, state."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ranges: tuple[tuple[float, float] | None, ...]
    """Of each output; None for one that is the number of an action."""
    begin: tuple[float, ...]
    """The outputs before the first sample."""
    notes: tuple[str, ...]
    """Of each output."""
    state: tuple[tuple[str, str], ...] = ()
    """What the controller remembers: names, and what they are."""
    sample_time: float | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the output is the number of an action."""
        return self.ranges[0] is None

    def description(self, guid: str, sources: Sequence[str]) -> str:
        """Return the model description (XML)."""
        files = "".join(f"      <File name={in_xml(file)}/>\n" for file in sources)
        step = "" if self.sample_time is None else f'  <DefaultExperiment stepSize="{self.sample_time!r}"/>\n'
        first = len(self.inputs) + 1
        numbers = range(first, first + len(self.outputs))
        listed = "".join(f'      <Unknown index="{i}" dependencies=""/>\n' for i in numbers)
        return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName={in_xml(self.name)} guid={in_xml(guid)}
    description="A controller written by spaql after an equivalence check"
    generationTool="spaql {version("spaql")}" variableNamingConvention="flat">
  <CoSimulation modelIdentifier={in_xml(self.name)} canHandleVariableCommunicationStepSize="true"
      canGetAndSetFMUstate="true" canNotUseMemoryManagementFunctions="true">
    <SourceFiles>
{files}    </SourceFiles>
  </CoSimulation>
{self._units()}{step}  <ModelVariables>
{self._variables()}  </ModelVariables>
  <ModelStructure>
    <Outputs>
{listed}    </Outputs>
    <InitialUnknowns>
{listed}    </InitialUnknowns>
  </ModelStructure>
</fmiModelDescription>
"""

    def _units(self) -> str:
        units = sorted({split_unit(name)[1] for name in (*self.inputs, *self.outputs)} - {""})
        listed = "".join(f"    <Unit name={in_xml(unit)}/>\n" for unit in units)
        return f"  <UnitDefinitions>\n{listed}  </UnitDefinitions>\n" if units else ""

    def _variables(self) -> str:
        lines: list[str] = []
        taken: set[str] = set()
        for name in self.inputs:
            lines.append(_variable(len(lines), name, "input", "continuous", 'start="0"', "", taken))
        for name, ends, note in zip(self.outputs, self.ranges, self.notes, strict=True):
            kind = "" if ends is None else f'min="{ends[0]!r}" max="{ends[1]!r}"'
            real = "Integer" if ends is None else "Real"
            lines.append(_variable(len(lines), name, "output", "discrete", kind, note, taken, real))
        for name, note in self.state:
            lines.append(_variable(len(lines), f"state.{name}", "local", "discrete", "", note, taken))
        return "".join(lines)


def interface_of(source: Source) -> Interface:
    """Return what the FMU of a controller declares."""
    machine = source.machine
    state = tuple((one.name, one.note) for one in source.program.state)
    begin = machine.controller.start if machine.remembers else machine.safe or ()
    if machine.discrete:
        notes = (action_numbers(machine),)
        return Interface(
            source.name, source.observations, ("action",), (None,), begin, notes, state, source.sample_time
        )
    low, high = machine.arrays.arrays.limit[[LOW, HIGH]].tolist()
    return Interface(
        source.name,
        source.observations,
        machine.actions,
        tuple(zip(low, high, strict=True)),
        begin,
        ("",) * machine.width,
        state,
        source.sample_time,
    )


def _variable(
    reference: int,
    named: str,
    causality: str,
    variability: str,
    more: str,
    note: str,
    taken: set[str],
    kind: str = "Real",
) -> str:
    """Return a variable; the names of an FMU are all different."""
    name, unit = split_unit(named)
    while name in taken:
        name += f" ({causality})"
    taken.add(name)
    if unit:
        more += f" unit={in_xml(unit)}"
    initial = "" if causality == "input" else ' initial="calculated"'
    described = f" description={in_xml(note)}" if note else ""
    return (
        f'    <ScalarVariable name={in_xml(name)} valueReference="{reference}" causality="{causality}" '
        f'variability="{variability}"{initial}{described}><{kind} {more.strip()}/></ScalarVariable>\n'
    )


def wrapper(interface: Interface, guid: str) -> str:
    """Return the source `fmi2.c`; it needs no headers of the standard, only the controller's."""
    name = interface.name
    prefix = name.upper()
    definitions = {
        "NAME": f'"{name}"',
        "NAMED(part)": f"{name}_##part",
        "GUID": f'"{guid}"',
        "INPUTS": f"{prefix}_OBSERVATIONS",
        "OUTPUTS": f"{prefix}_ACTIONS",
        "BEGIN": ", ".join(map(repr, interface.begin or (0.0,) * len(interface.outputs))),
        "WHOLE": str(int(interface.is_whole)),
    }
    if interface.state:
        definitions["PERIOD"] = f"{prefix}_SAMPLE_TIME"
        definitions["HIDDEN"] = ", ".join(f"(double)self->state.{one}" for one, _ in interface.state)
    defined = "".join(f"#define {key} {value}\n" for key, value in definitions.items())
    head = _HEAD.format(name=name)
    return f'{head}#include "{name}.h"\n{defined}{_SOURCE.read_text(encoding="utf-8")}'
