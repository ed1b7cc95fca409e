"""Formulas as MathML, which browsers draw by themselves: the pages need no script and no network."""

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx


def tree(text: str, as_block: bool) -> str:
    """Return the MathML of a formula in LaTeX; one that cannot be read ends the build."""
    return latex2mathml.tex2mathml(text, as_block=as_block)


def visit_math(writer, node: nodes.math) -> None:
    """Write a formula within a sentence."""
    writer.body.append(tree(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_math_block(writer, node: nodes.math_block) -> None:
    """Write a formula on a line of its own."""
    writer.body.append(tree(node.astext(), as_block=True))
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Take over both kinds of formulas."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True}
