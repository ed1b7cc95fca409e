"""Files in xacro, the macro language of URDF: told apart, and expanded where the library is there."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from xml.dom import minidom
from xml.etree.ElementTree import Element

from constrained_sim.descriptions.document import descend
from constrained_sim.exceptions import ModelError
from constrained_sim.optional import optional

HOW = "expand it: `xacro FILE.urdf.xacro > FILE.urdf` (pip install xacro, or the ROS package xacro)"


def is_xacro(root: Element) -> bool:
    """Return whether a file still has something to expand: elements ``xacro:...``."""
    return any(element.tag.startswith("xacro:") for element, _ in descend(root))


def expanded(text: str, folder: Path | None) -> str:
    """Return the URDF of a xacro file, which looks up what it includes in `folder`.

    Raises:
        ModelError: the library xacro refuses the file.
        MissingLibrary: it is not installed.
    """
    xacro = optional("xacro", "this is a xacro file, not a URDF, and until `xacro FILE` has expanded it")
    document = minidom.parseString(text)
    try:
        with chdir(folder or "."):
            xacro.process_doc(document)
    except Exception as error:  # xacro evaluates expressions, which may raise anything
        raise ModelError(f"this is a xacro file that cannot be expanded: {error}; {HOW}") from error
    return str(document.toxml())
