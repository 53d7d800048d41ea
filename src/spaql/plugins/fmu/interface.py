"""What an exported FMU declares: its variables, and the model description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from spaql.export.comments import action_numbers
from spaql.export.language import Source
from spaql.kernels.controller import HIGH, LOW
from spaql.languages import in_xml
from spaql.spaces import split_unit


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
