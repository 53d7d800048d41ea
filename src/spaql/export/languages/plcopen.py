"""A function block in Structured Text as PLCopen XML (TC6, version 2.01), which PLC tools import."""

from __future__ import annotations

from importlib.metadata import version
from xml.etree import ElementTree as ET

from spaql.export.language import Source
from spaql.export.languages.st_reader import BlockVariable, FunctionBlock
from spaql.export.languages.structured_text import StructuredText, function_block
from spaql.export.running import EquivalenceError
from spaql.languages import in_comment

_TC6 = "http://www.plcopen.org/xml/tc6_0201"
_XHTML = "http://www.w3.org/1999/xhtml"
_PARTS = {"VAR_INPUT": "inputVars", "VAR_OUTPUT": "outputVars", "VAR": "localVars"}
_DATE = "1970-01-01T00:00:00"
"""The schema asks for one: the same controller has the same bytes."""


class PlcOpen(StructuredText):
    """One file with the function block of Structured Text."""

    name = "PLCopen XML"
    suffix = ".xml"

    def text(self, source: Source) -> str:
        """Return the content of the file."""
        ET.register_namespace("", _TC6)
        ET.register_namespace("xhtml", _XHTML)
        project = ET.Element(_tag("project"))
        _add(project, "fileHeader", companyName="", productName="spaql", productVersion=version("spaql"),
             creationDateTime=_DATE)  # fmt: skip
        scales = _add(_add(project, "contentHeader", name=source.name), "coordinateInfo")
        for language in ("fbd", "ld", "sfc"):
            _add(_add(scales, language), "scaling", x="1", y="1")
        types = _add(project, "types")
        _add(types, "dataTypes")
        block = function_block(source)
        pou = _add(_add(types, "pous"), "pou", name=block.name, pouType="functionBlock")
        interface = _add(pou, "interface")
        for section, variables in block.variables.items():
            part = _add(interface, _PARTS[section])
            for variable in variables:
                _declare(part, variable)
        _say(_add(_add(pou, "body"), "ST"), block.body)
        _say(_add(pou, "documentation"), "\n".join(in_comment(line) for line in source.heading if line))
        _add(_add(project, "instances"), "configurations")
        ET.indent(project)
        content: bytes = ET.tostring(project, encoding="utf-8", xml_declaration=True)
        return content.decode() + "\n"

    def read(self, content: bytes) -> FunctionBlock:
        """Return the function block in a file."""
        pous = ET.fromstring(content).findall(f".//{_tag('pou')}")
        if len(pous) != 1 or pous[0].get("pouType") != "functionBlock":
            raise EquivalenceError("The PLCopen XML does not hold one function block.")
        variables = {
            section: tuple(map(_declared, part))
            for section, word in _PARTS.items()
            for part in pous[0].iterfind(f"./{_tag('interface')}/{_tag(word)}")
        }
        body = pous[0].findtext(f"./{_tag('body')}/{_tag('ST')}/{{{_XHTML}}}p", "")
        return FunctionBlock(pous[0].get("name", ""), variables, body)

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"the function block in the XML by {super().tool()}"


def _declare(part: ET.Element, variable: BlockVariable) -> None:
    """Add the declaration of a variable."""
    declaration = _add(part, "variable", name=variable.name)
    _add(_add(declaration, "type"), variable.kind)
    if variable.value:
        _add(_add(declaration, "initialValue"), "simpleValue", value=variable.value)
    if variable.note:
        _say(_add(declaration, "documentation"), variable.note)


def _declared(declaration: ET.Element) -> BlockVariable:
    """Return a variable that is declared."""
    kind = declaration.find(f"./{_tag('type')}/*")
    value = declaration.find(f".//{_tag('simpleValue')}")
    assert kind is not None
    begin = "" if value is None else value.get("value", "")
    return BlockVariable(declaration.get("name", ""), kind.tag.rpartition("}")[2], begin)


def _tag(word: str) -> str:
    return f"{{{_TC6}}}{word}"


def _add(parent: ET.Element, word: str, **attributes: str) -> ET.Element:
    return ET.SubElement(parent, _tag(word), attributes)


def _say(parent: ET.Element, text: str) -> None:
    ET.SubElement(parent, f"{{{_XHTML}}}p").text = text
