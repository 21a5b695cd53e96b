# SPDX-License-Identifier: Apache-2.0
"""libsmalti by cffi, without a compiler: the functions that declarations.h has of the public headers, and how they are
called: with errors as exceptions, open things that are closed once, and calls that Ctrl-C ends."""

from __future__ import annotations

import operator
import os
import threading
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Union

from cffi import FFI

from .version import __version__

Text = Union[str, bytes, "os.PathLike[str]"]

ffi: Any = FFI()
ffi.cdef(Path(__file__).with_name("declarations.h").read_text(encoding="utf-8"))


def _open_library() -> Any:
    own = Path(__file__).with_name("installed") / "lib/libsmalti.so.0"  # of scripts/wheel
    name = os.environ.get("SMALTI_LIBRARY") or (str(own) if own.exists() else "libsmalti.so.0")
    try:
        library = ffi.dlopen(name)
    except OSError as error:
        raise ImportError(f"{error}; install Smalti (behind `make install` run `ldconfig`), or let SMALTI_LIBRARY name "
                          f"the file of its library") from None
    found = ffi.string(library.smalti_version()).decode()
    if found.split(".")[:2] != __version__.split(".")[:2]:
        raise ImportError(f"{name}: expected version {__version__} of Smalti, found {found}; install this package "
                          f"from the same version's python directory")
    return library


lib = _open_library()


class Error(Exception):
    """What the library refused, in its words. It is also the exception of Python that is like it: ValueError,
    FileNotFoundError, ..."""

    code: str  # "EINVAL", ...: the C library's, without SMALTI_


def _error_class(base: type) -> type:
    return type("Error", (Error, base), {"__module__": "smalti", "__doc__": Error.__doc__})


_LIKE: Dict[str, type] = {
    code: _error_class(base) for code, base in {
        "EINVAL": ValueError, "EFORMAT": ValueError, "ECORRUPT": ValueError, "EIO": OSError,
        "ENOENT": FileNotFoundError, "ENOMEM": MemoryError, "ENODEV": RuntimeError, "ECANCELLED": RuntimeError,
        "EUNSUPPORTED": NotImplementedError}.items()}


def exception(error: Any) -> Error:
    """Of a struct smalti_error."""
    code = ffi.string(ffi.cast("enum smalti_code", error.code)).replace("SMALTI_", "")
    made: Error = _LIKE[code](ffi.string(error.message).decode("utf-8", "replace"))
    made.code = code
    return made


def check(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns, unless that is -1 or NULL: an exception then."""
    error = ffi.new("struct smalti_error *")
    result = function(*arguments, error)
    if result == ffi.NULL if isinstance(result, ffi.CData) else result < 0:
        raise exception(error)
    return result


def string(pointer: Any) -> Optional[str]:
    return None if pointer == ffi.NULL else ffi.string(pointer).decode("utf-8", "replace")


def fields(struct: Any) -> Dict[str, Any]:
    """The numbers, flags and strings of a struct."""
    values = {name: getattr(struct, name) for name, _ in ffi.typeof(struct).fields}
    return {name: string(value) if isinstance(value, ffi.CData) else value for name, value in values.items()}


def c_string(value: Text) -> Any:
    name = os.fspath(value)
    data = name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name
    if b"\0" in data:
        raise ValueError(f"{value!r}: expected a text without NUL characters")
    return ffi.new("char[]", data)


_OTHER_NUMBERS = [ffi.typeof(name) for name in ("bool", "double")]


class Options:
    """A struct of options, at the library's defaults but for what is given and not None."""

    def __init__(self, name: str, defaults: Callable[[Any], None], **given: Any) -> None:
        self.struct: Any = ffi.new(f"struct {name} *")
        self._kept: List[Any] = []
        defaults(self.struct)
        kinds = {field: place.type for field, place in ffi.typeof(self.struct).item.fields}
        for field, value in given.items():
            if value is not None:
                setattr(self.struct, field, self._converted(field, kinds[field], value))

    def _converted(self, field: str, kind: Any, value: Any) -> Any:
        if kind.kind == "enum":
            return _choice(field, kind, value)
        if isinstance(value, (str, bytes, os.PathLike)):
            return self.keep(c_string(value))
        if kind.kind != "primitive" or kind in _OTHER_NUMBERS:
            return value
        number = operator.index(value)  # NumPy's integers, too
        return number + 2**64 if kind is ffi.typeof("uint64_t") and number < 0 else number  # seeds, as torch takes them

    def keep(self, value: Any) -> Any:
        """For as long as the struct is there."""
        self._kept.append(value)
        return value

    def strings(self, values: Sequence[Text]) -> Any:
        """As an array of pointers."""
        return self.keep(ffi.new("const char *[]", [self.keep(c_string(value)) for value in values]))


def _choice(field: str, kind: Any, name: str) -> int:
    """The value of an enum that has NAME at its end, with underscores for hyphens."""
    values: Dict[str, int] = kind.relements
    start = os.path.commonprefix(list(values)).rindex("_") + 1
    known = {long[start:].lower().replace("_", "-"): values[long] for long in sorted(values, key=lambda long: values[long])}
    if name not in known:
        raise ValueError(f"{field}: expected one of {', '.join(known)}, found {name!r}")
    return known[name]


class Call:
    """A call that may take long: what a callback raises, Ctrl-C above all, cancels it, and is raised behind it."""

    def __init__(self, cancel: Callable[[], None]) -> None:
        self.cancel = cancel
        self.thread = threading.get_ident()
        self.failure: Optional[BaseException] = None
        self._callbacks: List[Any] = []

    def callback(self, kind: Any, function: Callable[..., Any], error: Any = None) -> Any:
        """As a pointer to a function that returns `error` after it has raised something."""
        made = ffi.callback(kind, function, error, self._failed)
        self._callbacks.append(made)
        return made

    def end(self) -> None:
        """Nothing calls back any more; what the callbacks hold goes, too."""
        self.cancel = lambda: None
        self._callbacks.clear()

    def _failed(self, _kind: type, failure: BaseException, _traceback: Any) -> None:
        if self.failure is None:
            self.failure = failure
        self.cancel()


class Resource:
    """Something of the library that is open. It is closed once, after what is open on it and the calls that use it, which
    are cancelled."""

    def __init__(self, name: str, pointer: Any, release: Callable[[Any], Any], parent: Optional[Resource] = None) -> None:
        self._name, self._pointer, self._release, self._parent = name, pointer, release, parent
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._calls: weakref.WeakSet[Call] = weakref.WeakSet()  # Ctrl-C may end one before it has left
        self._children: Set[Resource] = set()
        self._closing = False
        if parent is not None:
            parent._children.add(self)

    @contextmanager
    def call(self, cancel: Callable[[], None] = lambda: None) -> Iterator[Call]:
        """While it goes on the resource stays open; `cancel` is called when it should end soon."""
        call = Call(cancel)
        with self._changed:
            if self._closing:
                raise ValueError(f"the {self._name} is closed")
            self._calls.add(call)
        try:
            yield call
        except Exception:
            if call.failure is None:
                raise
        finally:
            call.end()
            with self._changed:
                self._calls.discard(call)
                self._changed.notify_all()
        if call.failure is not None:
            raise call.failure

    @property
    def pointer(self) -> Any:
        if self._closing:
            raise ValueError(f"the {self._name} is closed")
        return self._pointer

    @property
    def is_open(self) -> bool:
        return not self._closing and os.getpid() == self._process

    @property
    def used(self) -> bool:
        """By something that is open on it."""
        return bool(self._children)

    def close(self) -> None:
        if os.getpid() != self._process:
            return  # it is the parent process's
        with self._changed:
            self._closing = True
            if any(call.thread == threading.get_ident() for call in self._calls):
                raise RuntimeError(f"the {self._name} cannot be closed by a callback of what it does")
            for call in self._calls:
                call.cancel()
            self._changed.wait_for(lambda: not self._calls)
        for child in list(self._children):
            child.close()
        with self._changed:
            pointer, self._pointer = self._pointer, None
        if pointer is None:
            return
        if self._parent is not None:
            self._parent._children.discard(self)
        self._release(pointer)
