"""Sources that machine code depends on: of all kernels, and of all that they name, without docstrings and comments.

A kernel's machine code holds the functions, classes and constants that the kernel names, in whichever file of the
package they are. So the definitions are followed from name to name; an edit of any of them leads to other machine code,
and an edit of anything else to none. ``python sources.py`` prints the digest.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
"""Where the sources are, not links to them."""

COMPILERS = tuple(f"compilation.{name}" for name in ("kernel", "machine_code", "object_code", "short_errors"))
"""Modules that make and keep machine code: each counts as a whole."""

DECORATOR = "kernel"
"""What declares a kernel (constrained_sim.compilation.kernel)."""


@functools.cache
def text_digest() -> str:
    """Return a digest of the text of all sources: where it is the same, so is :func:`code_digest`."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def code_digest() -> str:
    """Return a digest of the code that kernels consist of; it takes a few tenths of a second."""
    return hashlib.sha256("\n".join(sorted(kernel_code(PACKAGE))).encode()).hexdigest()


def kernel_code(package: Path) -> set[str]:
    """Return all statements that the machine code depends on, each with the name of its module.

    Args:
        package: folder of a package.
    """
    modules = Modules(package)
    todo = [(name, statement) for name in modules.names() for statement in modules[name].kernels()]
    seen: set[int] = set()
    code = {ast.dump(statement) for name in COMPILERS if name in modules for statement in modules[name].statements}
    while todo:
        name, statement = todo.pop()
        if id(statement) not in seen:
            seen.add(id(statement))
            code.add(f"{name}: {ast.dump(statement)}")
            todo += modules.named_by(name, statement)
    return code


class Modules:
    """The modules of a package, by their names below it; each is read once."""

    def __init__(self, package: Path) -> None:
        """Find them."""
        self._package = package.name
        self._paths = {_module_name(path.relative_to(package)): path for path in package.rglob("*.py")}
        self._read = functools.cache(lambda name: Module(self._paths[name]))

    def __contains__(self, name: str) -> bool:
        """Return whether there is a module of this name."""
        return name in self._paths

    def __getitem__(self, name: str) -> Module:
        """Return a module."""
        return self._read(name)

    def names(self) -> list[str]:
        """Return the names of those that may declare kernels."""
        return [name for name, path in self._paths.items() if DECORATOR.encode() in path.read_bytes()]

    def named_by(self, name: str, statement: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
        """Yield the modules and statements of the package that define what a `statement` of module `name` names."""
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                yield from self._defined(name, node.id)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    yield from self._imported(node.module or "", alias.name)

    def _defined(self, name: str, variable: str) -> Iterator[tuple[str, ast.stmt]]:
        """Yield what defines a variable of module `name`: there, or where that imports it from."""
        module = self[name]
        for statement in module.defined.get(variable, ()):
            yield name, statement
        for source, original in module.imported.get(variable, ()):
            yield from self._imported(source, original)

    def _imported(self, source: str, variable: str) -> Iterator[tuple[str, ast.stmt]]:
        """Yield what defines a `variable` of module `source`: all of it where the variable is a module itself."""
        if source != self._package and not source.startswith(f"{self._package}."):
            return
        below = source.removeprefix(self._package).removeprefix(".")
        as_module = f"{below}.{variable}".removeprefix(".")
        if as_module in self:
            for statement in self[as_module].statements:
                yield as_module, statement
        elif below in self:
            yield from self._defined(below, variable)


class Module:
    """The statements of a module, without what does not act: docstrings, and annotations of functions.

    Attributes:
        statements: all but imports.
        defined: by variable, the statements that may set it.
        imported: by variable, the module and the variable there that it may come from.
    """

    def __init__(self, path: Path) -> None:
        """Read it from its file."""
        self.statements: list[ast.stmt] = []
        self.defined: dict[str, list[ast.stmt]] = {}
        self.imported: dict[str, list[tuple[str, str]]] = {}
        for statement in _Stripped().visit(ast.parse(path.read_bytes())).body:
            if not isinstance(statement, ast.Import | ast.ImportFrom):
                self.statements.append(statement)
                for variable in _set_by(statement):
                    self.defined.setdefault(variable, []).append(statement)
            for node in ast.walk(statement):
                if isinstance(node, ast.ImportFrom) and node.module:
                    for alias in node.names:
                        self.imported.setdefault(alias.asname or alias.name, []).append((node.module, alias.name))

    def kernels(self) -> list[ast.stmt]:
        """Return the statements that name the decorator."""
        return [statement for statement in self.statements if any(map(_is_decorator, ast.walk(statement)))]


class _Stripped(ast.NodeTransformer):
    """Takes away what does not act."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Take away texts that stand for themselves."""
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return ast.copy_location(ast.Pass(), node) if is_text else node

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        """Take away annotations of arguments."""
        for argument in [*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg]:
            if argument is not None:
                argument.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Take away the annotation of the result."""
        node.returns = None
        return self.generic_visit(node)


def _is_decorator(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and node.id == DECORATOR) or (
        isinstance(node, ast.Attribute) and node.attr == DECORATOR
    )


def _set_by(statement: ast.stmt) -> Iterator[str]:
    """Yield the variables that a statement of a module may set."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(getattr(node, "ctx", None), ast.Store):
            while isinstance(node, ast.Attribute | ast.Subscript):  # of a variable
                node = node.value
            if isinstance(node, ast.Name):
                yield node.id


def _module_name(path: Path) -> str:
    """Return the name of a module below its package."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


if __name__ == "__main__":
    print(code_digest())
