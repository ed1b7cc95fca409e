"""The decorator of every compiled function: each is compiled once, by itself, and its machine code is kept on disk."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numba
import numpy as np
from numba.core import sigutils, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from constrained_sim.compilation.background import BACKGROUND, LOOK
from constrained_sim.compilation.machine_code import MachineCode
from constrained_sim.compilation.progress import PROGRESS, not_compiled
from constrained_sim.compilation.second_process import SECOND
from constrained_sim.compilation.short_errors import short_errors

KERNELS: list[Kernel] = []
"""What the modules imported so far have declared, in the order of declaration."""

NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""What Numba compiles beside a function, for callers in Python and in C: :attr:`Kernel.entrance` does the former."""


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    inline: bool = False,
    fastmath: bool | set[str] = False,
    nogil: bool = False,
    error_model: str = "python",
    stage: bool = False,
    spliced: bool = False,
) -> Any:
    """Compile `function` at its first call, or load the machine code that an earlier process left.

    Where many kernels are missing, another process compiles them, and this one runs the source meanwhile.

    Numba's own decorator copies the machine code of all callees into the caller and optimises it again: a function at
    depth d is compiled d times. A kernel calls the machine code of other kernels instead. Without the compiler
    (``NUMBA_DISABLE_JIT=1``) a kernel is the Python function itself.

    Args:
        function: takes and returns numbers, arrays, and (named) tuples of them.
        inline: copy it into its callers after all; for small functions whose call takes longer than their work.
        fastmath: liberties that the compiler may take with floating-point arithmetic.
        nogil: let other Python threads run meanwhile.
        error_model: "numpy" gives infinity or NaN where "python" raises ZeroDivisionError.
        stage: its first argument is a model, which may be an :class:`InterpretedModel`.
        spliced: its source becomes part of that of each caller; for what is called once, and takes many arrays, each of
            which is counted when it is handed over.
    """
    options: dict[str, Any] = {"fastmath": fastmath, "nogil": nogil, "error_model": error_model}
    if function is None:
        return functools.partial(kernel, inline=inline, stage=stage, spliced=spliced, **options)
    settings: Any = numba.config
    if settings.DISABLE_JIT:
        return _interpreted(function) if stage else function
    kind = Stage if stage else Kernel
    if spliced:
        options["inline"] = "always"
    made = kind(function, targetoptions={"nopython": True, "boundscheck": None, **NO_WRAPPERS, **options})
    made.inline = inline
    KERNELS.append(made)
    return made


class Kernel(CPUDispatcher):
    """A function and its machine code: one for each signature, and whether an array may be written to does not count.

    Numba's compiler lock is held while machine code is loaded or compiled: threads do that one after the other.

    Attributes:
        inline: whether callers contain its machine code.
        name: of the function.
        calls: by signature, the kernels that its machine code calls, and their signatures.
    """

    overloads: Any
    _compiler: Any
    _compiling_counter: Any
    _insert: Any
    _callers: ClassVar[list[list[tuple[Kernel, Any]]]] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Declare a kernel; nothing is compiled yet."""
        super().__init__(*args, **kwargs)
        self.inline = False
        self.name: str = self.py_func.__qualname__
        self.calls: dict[Any, list[tuple[Kernel, Any]]] = {}
        self._called: set[Any] = set()
        self._found: set[Any] = set()
        self._cache = MachineCode(self)
        self._is_callable, self._next_look = False, 0.0

    @functools.cached_property
    def entrance(self) -> Any:
        """The kernel that Python calls in place of this one: it unpacks the arguments, which few kernels need."""
        names = ", ".join(inspect.signature(self.py_func).parameters)
        scope: dict[str, Any] = {"__name__": self.__module__, "kernel": self}
        exec(f"def entrance({names}): return kernel({names})", scope)
        scope["entrance"].__qualname__ = f"{self.name}.entrance"
        return Kernel(scope["entrance"], targetoptions={**self.targetoptions, "no_cpython_wrapper": False})

    def source(self, *arguments: Any) -> Any:
        """Do it in Python, as silently as machine code where a number is not finite."""
        with np.errstate(all="ignore"):
            return self.py_func(*arguments)

    def runs_source(self) -> bool:
        """Whether a call runs the source, since another process compiles it; begin that where many are missing."""
        if self._is_callable:
            return False
        if not BACKGROUND.is_at_work():
            return not self.is_kept and BACKGROUND.begin(len(not_compiled(self)))
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK
            self._is_callable = self.entrance.is_kept
        return not self._is_callable

    def wait_if_overdue(self) -> None:
        """Wait for machine code where sources have run for long, and say how far it is."""
        if not BACKGROUND.is_overdue():
            return
        self._next_look = 0.0
        missing = left = not_compiled(self.entrance) if self.runs_source() else set()
        while self.entrance in left and BACKGROUND.is_at_work():
            PROGRESS.report(len(missing) - len(left), len(missing), self.name)
            time.sleep(LOOK)
            left = {kernel for kernel in left if not kernel.is_kept}
        if missing:
            PROGRESS.report(len(missing) - len(left), len(missing), "")
        self._next_look = 0.0

    def _compile_for_args(self, *arguments: Any, **named: Any) -> Any:
        """Return what Python calls for these arguments, of which Numba knows no machine code in this process."""
        numbas: Any = super()
        return self.source if self.runs_source() else numbas._compile_for_args(*arguments, **named)

    def compile(self, sig: Any) -> Any:
        """Return what Python calls for the signature `sig`; None to a kernel being compiled: it calls machine code."""
        given = tuple(sigutils.normalize_signature(sig)[0])
        plain = tuple(_plain(kind) for kind in given)
        with global_compiler_lock:
            if Kernel._callers:
                self.machine_code(plain)
                return None
            if BACKGROUND.is_at_work() and not self.entrance._is_there(plain):
                return self.source
            entry = self.entrance.machine_code(plain).entry_point
            for kinds in {given, plain} - self._found:  # from now on Python finds it at once; of two it would find none
                self._insert([kind._code for kind in kinds], entry, False)
                self._found.add(kinds)
            self._is_callable = True
        return entry

    def machine_code(self, sig: Any) -> Any:
        """Return Numba's result of compiling the plain signature `sig`; load it or compile it if it is not there."""
        if not self._is_there(sig):
            with self._cache.reserved(sig):
                self.calls[sig], self.overloads[sig] = self._cache.load(sig) or self._compiled(sig)
        return self.overloads[sig]

    def _is_there(self, sig: Any) -> bool:
        """Whether there is machine code for the plain signature `sig`, in this process or on disk."""
        if sig not in self.overloads:
            found = self._cache.load(sig)
            if found is None:
                return False
            self.calls[sig], self.overloads[sig] = found
        return True

    def _compiled(self, sig: Any) -> tuple[list[tuple[Kernel, Any]], Any]:
        """Compile it, and keep it; return what it calls, too."""
        calls: list[tuple[Kernel, Any]] = []
        Kernel._callers.append(calls)
        try:
            with self._compiling_counter, PROGRESS.of(self), short_errors():
                SECOND.begin(PROGRESS.total - PROGRESS.done)
                result = self._compiler.compile(sig, None)
        finally:
            Kernel._callers.pop()
        self._cache.save(sig, result, calls)
        return calls, result

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how a kernel calls this; a literal is a number like any other."""
        return super().get_call_template([_plain(kind) for kind in args], {k: _plain(kind) for k, kind in kws.items()})

    def get_overload(self, sig: Any) -> Any:
        """Return the key under which a caller finds how to call this: its machine code, or where that lies."""
        sig = tuple(sig)
        compiled = self.overloads[sig]
        for calls in Kernel._callers[-1:]:
            calls.extend(self.calls[sig] if self.inline else [(self, sig)])
        if self.inline:
            return compiled.entry_point
        key = self, sig
        if sig not in self._called:
            self._called.add(sig)
            self.targetctx.insert_user_function(key, compiled.fndesc)
        return key

    @property
    def is_kept(self) -> bool:
        """Whether machine code is in this process, or on disk."""
        return bool(self.overloads) or self._cache.is_kept

    def callees(self) -> Iterator[Kernel]:
        """Yield the kernels that this one names."""
        for name in self.py_func.__code__.co_names:
            value = self.py_func.__globals__.get(name)
            if isinstance(value, Kernel):
                yield value


class InterpretedModel:
    """What the stages of a computation act on where kernels do not know all of it.

    A stage that is called with it is its method of that name, or else runs as Python. So the source of a computation is
    there once, compiled as a whole for a model of arrays, and interpreted for this.
    """

    def run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Return what the stage `function` does to this."""
        own = getattr(self, function.__name__, None)
        return function(self, *arguments) if own is None else own(*arguments)


class Stage(Kernel):
    """A kernel whose first argument may be an :class:`InterpretedModel`, where Python calls it."""

    def __call__(self, model: Any, *arguments: Any) -> Any:
        """Do it, compiled or interpreted."""
        if isinstance(model, InterpretedModel):
            return model.run(self.py_func, arguments)
        return super().__call__(model, *arguments)


def _interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what a :class:`Stage` is without the compiler."""

    @functools.wraps(function)
    def stage(model: Any, *arguments: Any) -> Any:
        is_interpreted = isinstance(model, InterpretedModel)
        return model.run(function, arguments) if is_interpreted else function(model, *arguments)

    stage.runs_source, stage.wait_if_overdue = lambda: False, lambda: None  # type: ignore[attr-defined]  # as of a kernel
    return stage


def _plain(kind: Any) -> Any:
    """Return the type `kind` as kernels are compiled for it: no literal, and arrays that may be written to."""
    kind = types.unliteral(kind)
    if isinstance(kind, types.Array):
        return kind.copy(readonly=False)
    if isinstance(kind, types.NamedTuple | types.NamedUniTuple):
        return types.BaseTuple.from_types([_plain(part) for part in kind], kind.instance_class)
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        return types.BaseTuple.from_types([_plain(part) for part in parts])
    return kind
