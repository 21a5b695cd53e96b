# SPDX-License-Identifier: Apache-2.0
"""The process's one session: workers, policy, memory limit."""

from __future__ import annotations

import weakref
from types import TracebackType
from typing import Any, Callable, Optional, Type, TypeVar

from .library import Options, Resource, Text, check, lib

Self = TypeVar("Self", bound="Closable")


class Closable:
    """Closed by `with`, by close(), any number of times, when nothing names it any more, or when the interpreter ends."""

    def __init__(self, resource: Resource) -> None:
        self._hold(resource)

    def _hold(self, resource: Resource) -> None:
        self._resource = resource
        weakref.finalize(self, resource.close)

    def close(self) -> None:
        self._resource.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()


class Session(Closable):
    """The process's one StarPU instance (smalti/session.h has the options). None is the library's default: all CPUs that
    the process may use, all CUDA devices, and the memory that the machine allows. Only one can be open at a time."""

    def __init__(self, *, policy: Optional[str] = None, cpus: Optional[int] = None, opencl: Optional[int] = None,
                 cuda: Optional[int] = None, reproducible: Optional[bool] = None, memory_limit: Optional[int] = None,
                 gpu_memory_limit: Optional[int] = None, scratch: Optional[Text] = None,
                 trace: Optional[Text] = None) -> None:
        options = Options("smalti_session_options", lib.smalti_session_defaults, policy=policy, cpus=cpus, opencl=opencl,
                          cuda=cuda, reproducible=reproducible, memory_limit=memory_limit,
                          gpu_memory_limit=gpu_memory_limit, scratch=scratch, trace=trace)
        super().__init__(Resource("session", check(lib.smalti_session_open, options.struct), _close_session))
        _remember(self)


_last: Callable[[], Optional[Session]] = lambda: None


def _remember(session: Session) -> None:
    global _last
    _last = weakref.ref(session)


def open_session() -> Optional[Session]:
    """The process's, if there is one."""
    session = _last()
    return session if session is not None and session._resource.is_open else None


def _close_session(pointer: Any) -> None:
    check(lib.smalti_session_close, pointer)
