"""Folders of machine code: beside the package, or where the user may write.

The name of the folder tells all that the code depends on, the sources of all kernels included
(constrained_sim.compilation.sources): what is found there is never out of date, however the package was installed and
whichever file was edited.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import os
import pickle
import platform
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import binding
from numba.core import types
from numba.core.registry import cpu_target
from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]
from numba.core.serialize import dumps

from constrained_sim.compilation.compiled_function import CompiledFunction
from constrained_sim.compilation.object_code import rebuild, reduce
from constrained_sim.compilation.old_folders import mark_used, remove_unused
from constrained_sim.compilation.sources import PACKAGE, code_digest, text_digest
from constrained_sim.exceptions import KernelsNotKept
from constrained_sim.user_warnings import warn

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_NUMBA: Any = numba.config

Calls = list[tuple[Any, Any]]
"""Kernels, and their signatures, whose machine code is called."""

MARK = "sources-"
"""Beginning of the names of files that tell which texts of the sources led to a folder: it is not asked again."""


class MachineCode:
    """Keeps the machine code of one kernel for other processes.

    Besides the code it keeps which other kernels that calls, and by which names: these are loaded first. Code that was
    compiled by another process may have other names; who calls it by the old ones is compiled again.
    """

    def __init__(self, kernel: CompiledFunction) -> None:
        """Keep the code of `kernel`."""
        self._kernel = kernel

    @property
    def is_kept(self) -> bool:
        """Whether there is code for any signature."""
        return any(next(folder.glob(f"{self._prefix}-*.bin"), None) for folder in folders())

    @contextlib.contextmanager
    def reserved(self, sig: Any) -> Iterator[None]:
        """Let no other process compile the same meanwhile.

        Another process that compiles it is waited for. No two processes wait for each other: whoever holds a kernel
        waits only for kernels that this one calls; one that calls itself does not ask for itself.
        """
        folder = writable_folder()
        if folder is None or fcntl is None:
            yield
            return
        with _locked(folder / f"{self._name(sig)}.lock"):
            yield

    def load(self, sig: Any) -> tuple[Calls, Any] | None:
        """Return what the compiled function calls, and Numba's result of compiling it; None where that is not kept."""
        name = self._name(sig)
        return next(filter(None, (self._load(folder / name) for folder in folders())), None)

    def _load(self, path: Path) -> tuple[Calls, Any] | None:
        """Return what is kept in a file; None where there is none, or one whose callees have other names."""
        try:
            content = path.read_bytes()
        except OSError:
            return None
        mark_used(path.parent)
        _link_runtime()
        kept, code = pickle.loads(content)
        calls = []
        for module, name, signature, symbol in pickle.loads(kept):
            kernel = getattr(importlib.import_module(module), name)
            if kernel.machine_code(signature).fndesc.mangled_name != symbol:
                return None
            calls.append((kernel, signature))
        context = cpu_target.target_context
        result: Any = rebuild(context, pickle.loads(code))
        context.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return calls, result

    def save(self, sig: Any, result: Any, calls: Calls) -> None:
        """Keep a compiled function, and what it calls."""
        folder = writable_folder()
        if folder is None:
            return
        kept = {
            (kernel.__module__, kernel.name, signature, kernel.machine_code(signature).fndesc.mangled_name)
            for kernel, signature in calls
        }
        content = pickle.dumps((dumps(sorted(kept, key=repr)), dumps(reduce(result, self._kernel.inline))))
        folder.mkdir(exist_ok=True)  # where it was removed meanwhile
        path = folder / self._name(sig)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_bytes(content)
        partial.replace(path)

    @property
    def _prefix(self) -> str:
        return f"{self._kernel.__module__}.{self._kernel.name}"

    def _name(self, sig: Any) -> str:
        return f"{self._prefix}-{_digest(repr([(kind, *_fields(kind)) for kind in sig]).encode())[:16]}.bin"


def _fields(kind: Any) -> Iterator[tuple[str, ...]]:
    """Yield the fields of the named tuples in a type: Numba's name of it tells only how many there are."""
    if isinstance(kind, types.NamedTuple | types.NamedUniTuple):
        yield kind.instance_class._fields
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        for part in parts:
            yield from _fields(part)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, and remove it; who has waited for one that is removed takes the next."""
    while True:
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not _is_there(file.fileno(), path):
                continue
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _is_there(opened: int, path: Path) -> bool:
    """Return whether `path` is still the file that is open as descriptor `opened`."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(opened), path.stat())
    return False


@functools.cache
def _link_runtime() -> None:
    """Tell the linker where Numba's runtime is, which counts references to arrays: before the first kernel is loaded.

    Numba itself would prepare to compile here (``refresh``), which takes 27 MB; it still does when it has to compile.
    """
    for name, address in _nrt_python.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


@functools.cache
def folders() -> tuple[Path, ...]:
    """Return where to look for machine code, first what is nearest to the package."""
    places = _places()
    mark = MARK + text_digest()[:16]
    known = next((path.parent.name for place in places for path in place.glob(f"kernels-*-*/{mark}")), None)
    sources = known.split("-")[1] if known else code_digest()[:12]
    found = tuple(place / f"kernels-{sources}-{_compiler_digest()}" for place in places)
    for folder in found:
        if folder.is_dir() and not (folder / mark).exists():
            with contextlib.suppress(OSError):
                (folder / mark).touch()
    return found


@functools.cache
def writable_folder() -> Path | None:
    """Return the first of the folders that can be written to, made where it is missing; None if there is none."""
    for folder in folders():
        place = folder.parent
        with contextlib.suppress(OSError):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if place == _temporary_place() and not _is_private(place):
                continue
            if not folder.is_dir():
                remove_unused(place)
                folder.mkdir(exist_ok=True)
            (folder / (MARK + text_digest()[:16])).touch()
            tempfile.TemporaryFile(dir=folder).close()
            if place == _temporary_place():
                warn(KernelsNotKept(folder))
            return folder
    warn(KernelsNotKept(None))
    return None


def _places() -> list[Path]:
    """Return the folders in which a folder of machine code may lie; the last one does not outlive the machine's run."""
    places = [PACKAGE / "__pycache__"]
    if _NUMBA.CACHE_DIR:
        places = [Path(_NUMBA.CACHE_DIR) / "constrained_sim"]
    with contextlib.suppress(RuntimeError):  # no home
        places.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "constrained_sim")
    temporary = _temporary_place()
    with contextlib.suppress(FileNotFoundError):
        if not _is_private(temporary):  # anyone may make folders there, and put code into them
            return places
    return [*places, temporary]


def _temporary_place() -> Path:
    return Path(tempfile.gettempdir()) / f"constrained_sim-{_user()}"


def _is_private(folder: Path) -> bool:
    """Return whether nobody else can write into `folder`."""
    about = folder.lstat()
    return about.st_uid == _user() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _user() -> int:
    """Return the user's number, where the system has users."""
    return os.getuid() if hasattr(os, "getuid") else 0


def _compiler_digest() -> str:
    """Return what tells the processor, and who compiles for it."""
    target = cpu_target.target_context.codegen().magic_tuple()
    versions = platform.python_version(), numba.__version__, llvmlite.__version__, np.__version__
    return _digest(repr((target, versions)).encode())[:12]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
