"""How the site is built: ``sphinx-build -W --keep-going -b html docs docs/_build/html``.

Nothing is fetched. ``PERMDIST_DOCS=small`` runs the examples at the sizes of their tests,
``PERMDIST_DOCS=pages`` runs only the one that the first page shows.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError

import permdist

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "extensions"))
sys.path.append(str(DOCS.parent / "examples"))  # the scripts import common.py from there

project = "permdist"
author = "the permdist developers"
copyright = author
release = version = permdist.__version__

extensions = [
    "catalogue",
    "example_gallery",
    "inherited_parameters",
    "mathml",
    "myst_parser",
    "name_links",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "README.md"]
templates_path = ["_templates"]
default_role = "py:obj"
smartquotes = False  # types are quoted: {"exact", "auto"}
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

# ---- looks -------------------------------------------------------------------------------------

html_theme = "furo"
html_title = f"permdist {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_favicon = "_static/logo.svg"
html_logo = "_static/logo.svg"
html_theme_options = {
    "navigation_with_keys": True,
    "top_of_page_buttons": [],
    "light_css_variables": {
        "color-brand-primary": "#2c5aa0",
        "color-brand-content": "#2c5aa0",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8ab4f8",
        "color-brand-content": "#8ab4f8",
    },
}

# ---- the reference -----------------------------------------------------------------------------

autosummary_generate = sorted(f"api/{page.name}" for page in (DOCS / "api").glob("*.rst"))
autosummary_filename_map = {  # names that differ by case alone would share a file
    "permdist.diagnostics.summary": "permdist.diagnostics.summary_",
}
autosummary_context = {"top_level": [name for name in permdist.__all__ if name[0].isupper()]}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autoclass_content = "class"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
add_module_names = False

# ---- the examples ------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "_build/examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"overview\.py$"
    if os.environ.get("PERMDIST_DOCS") == "pages"
    else r"\.py$",
    "copyfile_regex": r"index\.rst",
    "reset_argv": "example_gallery.arguments",
    "image_scrapers": ("example_gallery.picture",),
    "reset_modules": (),
    "within_subsection_order": "example_gallery.Order",
    "backreferences_dir": "gallery/used",
    "doc_module": ("permdist",),
    "notebook_extensions": set(),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 3600,
    "abort_on_example_error": True,
    "parallel": 2,
}

# ---- the tutorials' pictures -------------------------------------------------------------------


drawing: list[subprocess.Popen] = []


def draw_tutorials(_app, _config):
    """Start to make the tutorials' pictures, unless they were made from the present code."""
    folder = DOCS / "tutorials"
    script = folder / "pictures.py"
    if script.is_file() and not runpy.run_path(str(script))["are_current"]():
        command = [sys.executable, str(folder / "pictures.py"), str(folder / "pictures")]
        drawing.append(subprocess.Popen(command))


def await_tutorials(_app):
    """Wait for the pictures, which were made while the examples ran."""
    if any(process.wait() for process in drawing):
        raise ExtensionError("docs/tutorials/pictures.py failed")


def skip_fields(_app, _what, _name, obj, _skip, _options):
    """Leave out members of which Python itself says nothing but their number."""
    return True if (obj.__doc__ or "").startswith("Alias for field number") else None


def keep_cut_offs(_app, doctree):
    """Undo links to addresses where a measure has a cut-off: NDCG@10 is no mailbox."""
    for link in list(doctree.findall(nodes.reference)):
        if re.fullmatch(r"mailto:\S+@\w+", link.get("refuri", "")):
            link.replace_self(link.children)


def trim_blocks(_app, doctree):
    """Take the blank line away that ends a doctest in Markdown."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext() and block.astext().endswith("\n"):
            block.rawsource = block.astext().rstrip()
            block.children = [nodes.Text(block.rawsource)]


def fold_navigation(_app, _pagename, _templatename, context, _doctree):
    """Unfold the reader's own branch only, since all of the reference on every page is slow."""
    everything = context["toctree"]
    context["toctree"] = lambda **options: everything(**(options | {"collapse": True}))


def setup(app):
    """Connect the functions above."""
    app.connect("config-inited", draw_tutorials)
    app.connect("builder-inited", await_tutorials, priority=900)
    app.connect("doctree-read", keep_cut_offs)
    app.connect("doctree-read", trim_blocks)
    app.connect("html-page-context", fold_navigation, priority=100)
    app.connect("autodoc-skip-member", skip_fields)
