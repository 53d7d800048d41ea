"""A function block in Structured Text as PLCopen XML (TC6, version 2.01), which PLC tools import."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree as ET

from spaql.export.equivalence import EquivalenceError, Run, Target
from spaql.export.memory.check import MemoryTarget
from spaql.export.memory.check import Run as MemoryRun
from spaql.export.memory.machine import MemoryMachine
from spaql.export.memory.structured_text import StructuredTextMemory
from spaql.export.structured_text import StructuredText
from spaql.export.target_controller import MachineController

_TC6, _XHTML = "http://www.plcopen.org/xml/tc6_0201", "http://www.w3.org/1999/xhtml"
_PARTS = {"VAR_INPUT": "inputVars", "VAR_OUTPUT": "outputVars", "VAR": "localVars"}
_DATE = "1970-01-01T00:00:00"
"""The schema asks for one: the same controller has the same bytes."""
_BLOCK = re.compile(r"^FUNCTION_BLOCK (\w+)\n(.*^END_VAR)\n(.*)^END_FUNCTION_BLOCK", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^(VAR_INPUT|VAR_OUTPUT|VAR)\n(.*?)^END_VAR$", re.DOTALL | re.MULTILINE)
_VARIABLE = re.compile(r"^ *(\w+) : (\w+)(?: := (.*?))?;(?: \(\* (.*) \*\))?$", re.MULTILINE)


class PlcOpen(Target):
    """One file with a function block."""

    name = "PLCopen XML"
    suffix = ".xml"

    def write(self, controller: MachineController, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        return {f"{name}.xml": as_xml(StructuredText().write(controller, name)[f"{name}.st"].decode(), name)}

    def load(self, controller: MachineController, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Read the function block from the XML; returns the function from inputs to actions."""
        text = {f"{name}.st": as_text(files[f"{name}.xml"]).encode()}
        return StructuredText().load(controller, text, name, folder)

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"the function block in the XML by {StructuredText().tool()}"

    def with_memory(self) -> PlcOpenMemory:
        """Return the target for controllers with memory."""
        return PlcOpenMemory()


class PlcOpenMemory(MemoryTarget):
    """One file with the function block of Structured Text."""

    name = PlcOpen.name
    suffix = PlcOpen.suffix
    manual = True

    def write(self, machine: MemoryMachine, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        text = StructuredTextMemory().write(machine, name)[f"{name}.st"].decode()
        return {f"{name}.xml": as_xml(text, name)}

    def load(self, machine: MemoryMachine, files: Mapping[str, bytes], name: str, folder: Path) -> MemoryRun:
        """Read the function block from the XML; returns the function that plays episodes."""
        text = {f"{name}.st": as_text(files[f"{name}.xml"]).encode()}
        return StructuredTextMemory().load(machine, text, name, folder)

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"the function block in the XML by {StructuredTextMemory().tool()}"


def as_xml(text: str, name: str) -> bytes:
    """Return a function block in Structured Text, as spaql writes it, as a project of PLCopen XML."""
    ET.register_namespace("", _TC6)
    ET.register_namespace("xhtml", _XHTML)
    found = _BLOCK.search(text)
    assert found is not None
    project = ET.Element(_tag("project"))
    _add(project, "fileHeader", companyName="", productName="spaql", productVersion=version("spaql"),
         creationDateTime=_DATE)  # fmt: skip
    scales = _add(_add(project, "contentHeader", name=name), "coordinateInfo")
    for language in ("fbd", "ld", "sfc"):
        _add(_add(scales, language), "scaling", x="1", y="1")
    types = _add(project, "types")
    _add(types, "dataTypes")
    pou = _add(_add(types, "pous"), "pou", name=found[1], pouType="functionBlock")
    interface = _add(pou, "interface")
    for kind, declared in _SECTION.findall(found[2]):
        variables = _add(interface, _PARTS[kind])
        for word, type_, value, note in _VARIABLE.findall(declared):
            one = _add(variables, "variable", name=word)
            _add(_add(one, "type"), type_)
            if value:
                _add(_add(one, "initialValue"), "simpleValue", value=value)
            if note:
                _say(_add(one, "documentation"), note)
    _say(_add(_add(pou, "body"), "ST"), found[3].strip("\n"))
    comments = re.findall(r"^\(\* (.*) \*\)$", text[: found.start()], re.MULTILINE)
    _say(_add(pou, "documentation"), "\n".join(comments))
    _add(_add(project, "instances"), "configurations")
    ET.indent(project)
    content: bytes = ET.tostring(project, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def as_text(content: bytes) -> str:
    """Return the function block of a project of PLCopen XML as Structured Text."""
    pous = ET.fromstring(content).findall(f".//{_tag('pou')}")
    if len(pous) != 1 or pous[0].get("pouType") != "functionBlock":
        raise EquivalenceError("The PLCopen XML does not hold one function block.")
    lines = [f"FUNCTION_BLOCK {pous[0].get('name')}"]
    for kind, part in _PARTS.items():
        for variables in pous[0].iterfind(f"./{_tag('interface')}/{_tag(part)}"):
            lines.append(kind)
            for one in variables:
                type_ = one.find(f"./{_tag('type')}/*")
                value = one.find(f".//{_tag('simpleValue')}")
                assert type_ is not None
                begin = "" if value is None else f" := {value.get('value')}"
                lines.append(f"    {one.get('name')} : {type_.tag.rpartition('}')[2]}{begin};")
            lines.append("END_VAR")
    body = pous[0].find(f"./{_tag('body')}/{_tag('ST')}/{{{_XHTML}}}p")
    assert body is not None
    return "\n".join([*lines, body.text or "", "END_FUNCTION_BLOCK"]) + "\n"


def _tag(word: str) -> str:
    return f"{{{_TC6}}}{word}"


def _add(parent: ET.Element, word: str, **attributes: str) -> ET.Element:
    return ET.SubElement(parent, _tag(word), attributes)


def _say(parent: ET.Element, text: str) -> None:
    ET.SubElement(parent, f"{{{_XHTML}}}p").text = text
