"""Sphinx: the documentation of constrained_sim. `make docs` builds it; rosdoc2 builds a copy of this folder."""

import sys
from pathlib import Path
from xml.etree import ElementTree

from constrained_sim.shipped import share_folder

sys.path.insert(0, str(Path(__file__).resolve().parent / "extensions"))

project = "constrained_sim"
author = "constrained_sim maintainers"
copyright = author
version = release = ElementTree.parse(share_folder() / "package.xml").findtext("version")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "reference_pages"]
made_by_rosdoc2 = ["index.rst", "__*", "[A-Z]*", "standards.rst", "standard_docs", "interfaces", "msg", "srv"]
exclude_patterns = ["_build", *made_by_rosdoc2]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_type_aliases = {"Array": "numpy.ndarray"}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_use_ivar = True

html_theme = "furo"
html_theme_options: dict[str, object] = {}  # not those that rosdoc2 has for its own theme
html_title = f"constrained_sim {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False

rosdoc2_settings = {"allow_other_extensions": True, "override_theme": False}
