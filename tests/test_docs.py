"""What the README, the docs and the notebooks show is run as it is written, and leads where it says."""

import csv
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import click
import pytest

import spaql
import spaql.export
from spaql.cli import main

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
ARDUINO_PAGE = ROOT / "docs" / "arduino.md"
ROS_NODE = ROOT / "examples" / "ros2_node" / "controller_node.cpp"
RUN = [page for page in PAGES if "```python" in page.read_text() and page != ARDUINO_PAGE]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").rglob("*.ipynb"))
LAB = [notebook for notebook in NOTEBOOKS if notebook.parent.name == "lab"]

# PlanTree takes half a minute for what the pages show: here it learns from fewer steps, with less effort.
SHORTER = (
    (r"total_timesteps=5000", "total_timesteps=600"),
    (r"(PlanTree\([^)]*seed=\w+)\)", r"\1, effort=0.02)"),
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
AVR = ("-mmcu=atmega328p", "-Os", "-Wall", "-Wextra", "-Werror", "-c")
ARDUINO = """
#include <math.h>
#define HIGH 1
#define LOW 0
#define OUTPUT 1
enum {A0, A1};
int analogRead(int);
unsigned long millis();
void pinMode(int, int), digitalWrite(int, int);
"""
"""What the Arduino IDE puts before a sketch, as far as the tutorial needs it."""
ROS = {
    "std_msgs/msg/float64_multi_array.hpp": """
#include <vector>
namespace std_msgs::msg { struct Float64MultiArray { std::vector<double> data; }; }
""",
    "rclcpp/rclcpp.hpp": """
#include <functional>
#include <string>
namespace rclcpp {
template <class T> struct Publisher {
    using SharedPtr = std::shared_ptr<Publisher>;
    void publish(const T &);
};
template <class T> struct Subscription { using SharedPtr = std::shared_ptr<Subscription>; };
struct Node {
    explicit Node(const std::string &);
    template <class T> typename Publisher<T>::SharedPtr create_publisher(const std::string &, int);
    template <class T> typename Subscription<T>::SharedPtr create_subscription(
        const std::string &, int, std::function<void(const T &)>);
};
void init(int, char **);
void spin(std::shared_ptr<Node>);
void shutdown();
}
""",
}
"""What the node of the page on exports uses of ROS 2, as declarations."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def shorter(code: str) -> str:
    for long, short in SHORTER:
        code = re.sub(long, short, code)
    return code


def run_script(code: str, folder: Path) -> str:
    (folder / "page.py").write_text(shorter(code))
    env = dict(os.environ, MPLBACKEND="agg")
    result = subprocess.run([sys.executable, "page.py"], cwd=folder, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_python_blocks_run_in_order(page: Path, tmp_path: Path) -> None:
    """A block that begins with the name of a file is that file, which the others may import."""
    script = []
    for block in blocks(page, "python"):
        if named := re.match(r"# (\w+\.py)\n", block):
            (tmp_path / named[1]).write_text(block)
        else:
            script.append(block)
    run_script("\n".join(script), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_cells_of_notebooks_run_in_order(notebook: Path, tmp_path: Path) -> None:
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] for cell in cells if "print(" in "".join(cell["source"])), "it is not executed"
    code = "\n\n".join("".join(cell["source"]) for cell in cells)
    run_script(re.sub(r"^( *)%", r"\1pass  # %", code, flags=re.MULTILINE), tmp_path)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_the_prose_of_notebooks_has_the_numbers_of_their_outputs(notebook: Path) -> None:
    """Each decimal in a text is in an output or in the code, or on the page of docs that the text links."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    shown = "\n".join(json.dumps([cell["source"], cell["outputs"]]) for cell in cells if "outputs" in cell)
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            pages = (notebook.parent / link for link in LINK.findall(text) if link.endswith(".md"))
            known = shown + "".join(page.read_text(encoding="utf-8") for page in pages)
            numbers = re.findall(r"(?<![\w.])-?\d[\d,]*\.\d+", text)
            assert [number for number in numbers if number not in known] == []


@pytest.mark.parametrize("notebook", LAB, ids=lambda notebook: notebook.stem)
def test_every_exercise_of_the_lab_is_followed_by_its_folded_solution(notebook: Path) -> None:
    kinds = ""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        tags = cell["metadata"].get("tags", [])
        folded = cell["metadata"].get("jupyter", {}).get("source_hidden", False)
        assert ("solution" in tags) <= (folded and "hide-cell" in tags)
        kinds += "E" if "### Exercise" in source else "S" if "solution" in tags else ""
    assert re.fullmatch("(ES){5,6}", kinds)


def test_the_first_minute(tmp_path: Path) -> None:
    """The README's lines of Python print what it shows, and so do its commands."""
    shown = blocks(README, "text")[0]
    assert run_script(blocks(README, "python")[0], tmp_path) == shown
    env = dict(os.environ, PATH=f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}")
    lines = blocks(README, "console")[1].splitlines()
    commands = [line[2:] for line in lines if line.startswith("$ spaql")]
    assert [command.split()[1] for command in commands] == ["train", "show"]
    for command in commands:
        run = subprocess.run(
            command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        )
    assert run.stdout.splitlines()[-1] == shown.splitlines()[0]


def test_the_readme_is_short() -> None:
    assert len(README.read_text().split()) <= 900


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            titles = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
            slugs = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
            assert anchor in slugs, f"{page.name} links to {target}"


def test_the_plants_are_counted_as_they_are_registered() -> None:
    """Plants of other tests, such as quiet ones, are registered under other ids than those of the package."""
    shown = (ROOT / "docs" / "plants.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(spaql/[\w-]+)` \|", shown, re.MULTILINE)
    code = "import gymnasium, spaql; print(*gymnasium.registry)"
    registered = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(listed) == sorted(name for name in registered.stdout.split() if name.startswith("spaql/"))
    words = {"twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15}
    counts = re.findall(r"ships (\w+) such plants|Of all (\w+), TreeSearch", shown)
    named = [word for groups in counts for word in groups if word]
    assert len(named) == 2
    assert {words[word] for word in named} == {len(listed)}


def figures(problem: str) -> dict[tuple[str, str], dict[str, str]]:
    """The details of the comparison on a problem, by algorithm and interactions."""
    with (ROOT / "docs" / "data" / "compare.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["problem"] == problem]
    return {(row["algorithm"], row["interactions"]): row for row in rows}


def near(shown: str, measured: str) -> bool:
    return abs(float(shown) - float(measured.split(" ±")[0].replace(",", ""))) <= 0.51


def test_the_figures_of_the_readme_are_those_of_its_pages() -> None:
    rows = re.findall(
        r"^\| (\S+-v\d) \| (\S+) \((\S+)\) \|[^|]*\| ([^|]*) \|", README.read_text(), re.MULTILINE
    )
    assert len(rows) == 5
    for problem, mean, worst, networks in rows:
        measured = figures(problem)
        plantree = measured["PlanTree", "10,000"]
        assert near(mean, plantree["return"])
        assert near(worst, plantree["worst seed"])
        for name, value in re.findall(r"([\w-]+) (-?[\d.]+)", networks):
            assert any(
                near(value, row["return"]) for (algorithm, _), row in measured.items() if algorithm == name
            )


def test_every_page_is_in_the_contents() -> None:
    contents = (ROOT / "docs" / "index.md").read_text()
    listed = re.findall(r"^[\w-]+$", contents, re.MULTILINE)
    assert {page.stem for page in PAGES[1:]} - {"index"} == set(listed)


def test_every_command_is_in_the_reference() -> None:
    listed = re.findall(r"^\| `spaql ([\w-]+)", (ROOT / "docs" / "command-line.md").read_text(), re.MULTILINE)
    assert set(listed) == set(main.list_commands(click.Context(main)))


def test_the_layers_are_drawn_as_in_the_contract() -> None:
    drawing = runpy.run_path(str(ROOT / "docs" / "layers.py"))
    assert drawing["FILE"].read_text() == drawing["svg"](), "run `python docs/layers.py`"


def test_the_sketch_compiles_for_an_uno(tmp_path: Path) -> None:
    run_script("\n".join(blocks(ARDUINO_PAGE, "python")), tmp_path)
    if not shutil.which("avr-g++"):
        pytest.skip("there is no avr-g++")
    (tmp_path / "cart.cpp").write_text(ARDUINO + blocks(ARDUINO_PAGE, "cpp")[0])
    for compiler, file in (("avr-g++", "cart.cpp"), ("avr-gcc", "controller.c")):
        subprocess.run([compiler, *AVR, file], cwd=tmp_path, check=True)


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_the_ros_2_node_compiles_with_the_exported_header(tmp_path: Path) -> None:
    controller = spaql.Design.load(ROOT / "tests" / "golden" / "0.1" / "controller-plantree-pendulum.spaql")
    spaql.export.c(controller, tmp_path / "controller.c", points=100)
    for name, text in {**ROS, "node.cpp": ROS_NODE.read_text()}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-I."]
    subprocess.run(["g++", *flags, "-fsyntax-only", "node.cpp"], cwd=tmp_path, check=True)
