"""Names of strangers' files on the terminal and in pages."""

import copy
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

import spaql
from hostile_names import law_tree
from spaql import archive
from spaql.cli import main
from spaql.cli.report import say

ZOO = Path(spaql.__file__).parent / "zoo" / "controllers"


def forged(name: str, folder: Path, base: str, parts: tuple[str, ...]) -> Path:
    """Return a model file whose actions have a name."""
    document = archive.load(ZOO / f"{base}.spaql")
    data = copy.deepcopy(document.data)
    for part in parts:
        data[part]["actions"] = [name, *data[part]["actions"][1:]]
    archive.save(folder / "forged.spaql", data, document.arrays)
    return folder / "forged.spaql"


@pytest.mark.parametrize("name", ["speed\x1b]0;title\x07", "a\nb", "a\0b", "\u202eabc", "\ud800", "a\x9bb"])
def test_a_file_with_names_that_are_not_printable_is_refused(name: str, tmp_path: Path) -> None:
    file = forged(name, tmp_path, "mountain-car-plantree", ("controller", "problem"))
    given = CliRunner().invoke(main, ["show", str(file)])
    assert given.exit_code == 1
    assert "a name is a text on one line" in given.output
    assert name not in given.output


def test_what_is_printed_has_no_control_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    say("speed\x1b]0;title\x07 \x1b[2J\u202eabc\nnext\tline")
    assert capsys.readouterr().out == "speed<U+001B>]0;title<U+0007> <U+001B>[2J<U+202E>abc\nnext\tline\n"


def test_no_controller_has_names_with_control_characters() -> None:
    for names in (("speed\x1b[2J\n", "angle", "force"), ("speed", "\u202eabc", "force"), ("a", "b", "c\r\n")):
        with pytest.raises(spaql.SettingError, match="a name is a text on one line"):
            law_tree(*names)


class Scripts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = list[str]()
        self.texts = list[str]()
        self.inside = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.inside = tag == "script"
        self.scripts += [""] if self.inside else []

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.scripts[-1] += data
        elif "</script" not in data:  # as text of the page it is harmless
            self.texts.append(data)


def test_a_name_stays_within_the_scripts_of_a_page(tmp_path: Path) -> None:
    name = "voltage</script><!--<script>document.title='run'</script>"
    file = forged(name, tmp_path, "dc-motor-treesearch", ("controller", "problem"))
    given = CliRunner().invoke(main, ["page", str(file), "--out", str(tmp_path / "page.html")])
    assert given.exit_code == 0, given.output
    content = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<!--" not in content  # after which a browser looks for two ends of a script
    parser = Scripts()
    parser.feed(content)
    assert len(parser.scripts) == 2
    assert name in json.loads(parser.scripts[0])["file"]["controller"]["actions"]
    assert "title='run'" in parser.scripts[1]  # in a comment
    assert "title='run'" not in "".join(parser.texts)
