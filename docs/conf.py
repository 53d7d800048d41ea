"""Sphinx builds the documentation: `sphinx-build -W docs docs/_build`."""

from importlib.metadata import version as version_of

project = "spaql"
author = "the spaql developers"
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
