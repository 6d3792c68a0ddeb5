"""The documentation site: ``sphinx-build -W --keep-going docs docs/_build/html``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import boscage

HERE = Path(__file__).parent
sys.path.append(str(HERE / "_ext"))

SHAPE = re.compile(r"(?:shape|or) \([^)]*\)")
SPECIAL = re.compile(r"([*]|_(?=[,)]))")

project = "Boscage"
author = "the Boscage developers"
copyright = author
version = release = boscage.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
root_doc = "index"
exclude_patterns = ["_build", "examples", "Thumbs.db", ".DS_Store"]
templates_path = ["_templates"]
default_role = "py:obj"
nitpicky = False  # docstrings name NumPy's and scikit-learn's types, which are documented elsewhere

# Guides: Markdown.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# The API: docstrings.
autosummary_generate = True
autodoc_member_order = "alphabetical"
autodoc_typehints = "none"  # the docstrings have them
numpydoc_show_class_members = False  # the page's template lists them
numpydoc_xref_param_type = False
toc_object_entries_show_parents = (
    "hide"  # "fit()" has room in the margin, with its class it has not
)

# The gallery: scripts under examples/ that are run while the site is built.
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "gallery.Order",
    "reset_modules": ("gallery.reset",),
    "reset_modules_order": "both",
    "plot_gallery": True,
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1,
    "remove_config_comments": True,
    "capture_repr": (),  # only what is printed, not the last value of each block
    "image_srcset": ["2x"],
    "backreferences_dir": "api/backreferences",
    "doc_module": ("boscage",),
    "reference_url": {"boscage": None},  # names in the examples lead to the API
}

html_theme = "pydata_sphinx_theme"
html_title = f"Boscage {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options: dict[str, Any] = {
    "logo": {"text": "Boscage"},
    "navbar_align": "left",
    "show_nav_level": 2,
    "show_toc_level": 2,
    # The table of the thesis map needs the whole width.
    "secondary_sidebar_items": {"**": ["page-toc"], "thesis-map": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "use_edit_page_button": False,
    "show_prev_next": True,
}
# Pages without pages below them have nothing to show beside them.
html_sidebars: dict[str, list[str]] = {"getting-started": [], "choosing": []}
html_show_sourcelink = False


def setup(app: Any) -> None:
    """Leave scikit-learn's own members out of the API, and escape shapes in docstrings."""
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _escape_shapes, priority=100)  # before numpydoc


def _skip(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    own = getattr(member, "fget", member)
    module = getattr(own, "__module__", None)
    # scikit-learn writes set_..._request, about the routing of metadata, for every estimator.
    if name.endswith("_request") or (module and not str(module).startswith("boscage")):
        return True
    return None


def _escape_shapes(
    app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Write ``shape (n_rows_,)`` so that reStructuredText sees no reference and no emphasis."""
    for i, line in enumerate(lines):
        lines[i] = SHAPE.sub(lambda shape: SPECIAL.sub(r"\\\1", shape[0]), line)
