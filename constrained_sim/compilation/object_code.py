"""Machine code that is loaded without the compiler's own copy of it.

What Numba keeps of a function holds its machine code twice: as an object file, and as LLVM's intermediate code, which
other functions may copy. Reading the latter takes nine tenths of the time and of the memory, and only callers of an
inlined kernel (constrained_sim.compilation.kernel) need it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding
from numba.core.codegen import CodeLibrary, JITCodeLibrary
from numba.core.compiler import CompileResult


class ObjectCode(JITCodeLibrary):
    """An object file that the process has loaded; other functions can call what it holds, and not copy it."""

    _engine: Any

    def __init__(self, codegen: Any, name: str, code: bytes) -> None:
        """Load `code`; what it calls has to be there already.

        Args:
            codegen: of the processor.
            name: of the function.
            code: the content of an object file.
        """
        CodeLibrary.__init__(self, codegen, name)
        self._engine = codegen._engine._ee
        self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function that it holds."""
        return self._engine.get_function_address(name)


def reduce(result: CompileResult, is_inlined: bool) -> tuple[Any, ...]:
    """Return what :func:`rebuild` needs, picklable.

    Args:
        result: of a compilation.
        is_inlined: whether callers copy the function.
    """
    (name, kind, (code, bitcode)), *rest = result._reduce()
    return (name, kind, (code, bitcode if is_inlined else b"")), *rest


def rebuild(target_context: Any, reduced: tuple[Any, ...]) -> CompileResult:
    """Return the compilation that :func:`reduce` was given, in another process."""
    (_, _, (_, bitcode)), *_ = reduced
    if bitcode:
        return CompileResult._rebuild(target_context, *reduced)
    return CompileResult._rebuild(_Loader(target_context), *reduced)._replace(target_context=target_context)


class _Loader:
    """A target that loads object files where Numba asks for its own libraries; all else is the real one's."""

    def __init__(self, target_context: Any) -> None:
        self._context = target_context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def codegen(self) -> Any:
        """Return itself: the next question is for a library."""
        return self

    def unserialize_library(self, state: tuple[Any, ...]) -> ObjectCode:
        """Load the object file that :func:`reduce` has left."""
        name, _, (code, _) = state
        return ObjectCode(self._context.codegen(), name, code)
