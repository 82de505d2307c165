"""How the documentation site is built: `make docs`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

from unbandit import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

# Notebooks are run with a profile of their own: nobody's settings count, and nothing but errors is said.
profile = HERE / "_build" / "ipython" / "profile_default"
profile.mkdir(parents=True, exist_ok=True)
(profile / "ipython_kernel_config.py").write_text('c.IPKernelApp.log_level = "ERROR"\n', encoding="utf-8")
os.environ["IPYTHONDIR"] = str(profile.parent)

lexers["csv"] = TextLexer()  # tables are shown as they are

project = "unbandit"
author = "The unbandit authors"
copyright = "the unbandit authors, Apache-2.0"
release = version = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docstrings",
    "mathml",
    "rule_pages",
    "reachable",
    "web_limits",
]
exclude_patterns = ["_build", "_extensions", "**/.ipynb_checkpoints"]
suppress_warnings = ["config.cache"]

# Pages
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"  # the notebooks are stored without outputs
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # nothing is loaded from elsewhere

# The API, from docstrings that are numpydoc with plain backticks
default_role = "code"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True

# The look
html_theme = "furo"
html_title = "unbandit"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_domain_indices = False
html_copy_source = False
html_show_sourcelink = False
pygments_style = "xcode"
pygments_dark_style = "monokai"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1f5a7a",
        "color-brand-content": "#1f5a7a",
        "color-brand-visited": "#5b4a7a",
        "color-background-primary": "#ffffff",
        "color-background-secondary": "#fbfaf8",
        "color-foreground-primary": "#222222",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8fc4e4",
        "color-brand-content": "#8fc4e4",
        "color-brand-visited": "#c0aee0",
        "color-background-primary": "#16181a",
        "color-background-secondary": "#1e2124",
        "color-foreground-primary": "#e8e6e3",
        "color-sidebar-caption-text": "#a3a9af",
    },
}
