"""Sphinx builds the documentation: `sphinx-build -W docs docs/_build`."""

from importlib.metadata import version as version_of

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html import HTML5Translator

project = "spaql"
author = copyright = "the spaql developers"  # noqa: A001
release = version = version_of("spaql")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_design",
]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
nb_execution_mode = "off"  # notebooks are kept as they were run, and the tests run their cells
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
default_role = "code"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = "spaql"
html_theme_options = {"sidebar_hide_name": False}
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_math_renderer = "mathml"


def _draw_math(writer: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, which browsers draw by themselves: nothing is loaded from elsewhere."""
    writer.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Tell Sphinx of the formulas."""
    app.add_html_math_renderer("mathml", (_draw_math, None), (_draw_math, None))
