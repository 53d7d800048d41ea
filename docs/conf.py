"""Sphinx builds the documentation: `sphinx-build -W docs docs/_build`."""

from importlib.metadata import version as version_of

project = "spaql"
author = "the spaql developers"
release = version = version_of("spaql")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
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
