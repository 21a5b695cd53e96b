# SPDX-License-Identifier: Apache-2.0
"""Files of torch.save: what they hold, read from their ZIP archive or from the form before it, and the elements of tensors,
read when they are asked for."""

from __future__ import annotations

import mmap
import os
import struct
import zipfile
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Dict, Iterator, Optional, Tuple, Type, Union

import numpy as np
from numpy.typing import NDArray

from .pickles import Refused, Storage, Tensor, load

_ZIP = b"PK\3\4"
_OLD = b"\x80\2\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # the pickle of 0x1950a86a20f9469cfc6c


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Whatever Python's modules raise of damaged bytes."""
    try:
        yield
    except Refused:
        raise
    except (zipfile.BadZipFile, struct.error, LookupError, ArithmeticError, EOFError, MemoryError, OSError, RuntimeError,
            ValueError) as cause:
        raise Refused(f"{what}: {cause}") from None


class _Archive:
    """STEM/data.pkl, STEM/byteorder, and STEM/data/KEY for each storage, none of them compressed."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._size = size
        self._zip = zipfile.ZipFile(file)
        pickles = [name for name in self._zip.namelist() if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise Refused(f"expected a ZIP archive with one data.pkl, found {len(pickles)}")
        self._stem = pickles[0][:-len("data.pkl")]
        if self._stem + "byteorder" in self._zip.namelist() and self._read("byteorder") != b"little":
            raise Refused("expected little-endian numbers; save it again on a little-endian machine")
        self.value, _ = load(BytesIO(self._read("data.pkl")))

    def _read(self, name: str, size: Optional[int] = None) -> bytes:
        member = self._zip.getinfo(self._stem + name)
        if member.compress_type != zipfile.ZIP_STORED or member.file_size > self._size:
            raise Refused(f"{name} is compressed, or larger than the file")
        if size is not None and member.file_size != size:
            raise Refused(f"{name} has {member.file_size} bytes, its tensors need {size}")
        return self._zip.read(member)

    def read(self, storage: Storage) -> bytes:
        return self._read(f"data/{storage.key}", storage.bytes)


class _Sequence:
    """Pickles of a number, a version, the machine, the value and the storages' keys; then each storage: the number of its
    elements (u64) and they themselves."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._bytes = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        (_, version, machine, self.value, keys), found = zip(*(load(self._bytes) for _ in range(5)))  # type: ignore[arg-type]
        if version != 1001 or type(machine) is not dict or machine.get("little_endian") is not True:
            raise Refused("expected version 1001 of the form before ZIP archives, and little-endian numbers")
        self._places: Dict[str, int] = {}
        place = self._bytes.tell()
        for key in keys:
            storage = found[3][key]
            if self._bytes[place:place + 8] != struct.pack("<Q", storage.elements):
                raise Refused(f"storage {key} has not the {storage.elements} elements that its tensors need")
            self._places[key] = place + 8
            place += 8 + storage.bytes

    def read(self, storage: Storage) -> bytes:
        place = self._places[storage.key]
        data = self._bytes[place:place + storage.bytes]
        if len(data) != storage.bytes:
            raise Refused(f"the file ends before storage {storage.key} does")
        return data


class TorchFile:
    """What torch.save has put into a file, `value`, with a Tensor for each tensor."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "rb")
        self._last: Optional[Tuple[Storage, bytes]] = None
        start, size = self._file.read(len(_OLD)), os.fstat(self._file.fileno()).st_size
        try:
            with _refusing("is damaged"):
                self._form = _form(start)(self._file, size)
        except BaseException:
            self.close()
            raise
        self.value: Any = self._form.value

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> TorchFile:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()

    def array(self, tensor: Tensor) -> NDArray[Any]:
        """Its elements. One storage is in memory at a time."""
        if tensor.elements > tensor.storage.elements:
            raise Refused(f"a tensor of shape {list(tensor.shape)} repeats the elements of its storage; save a copy that "
                          f"does not")
        if self._last is None or self._last[0] != tensor.storage:
            self._last = None
            with _refusing(f"storage {tensor.storage.key}"):
                self._last = (tensor.storage, self._form.read(tensor.storage))
        elements = np.frombuffer(self._last[1], tensor.storage.dtype.numpy)[tensor.offset:]
        if tensor.elements == 0:
            return np.empty(tensor.shape, elements.dtype)
        return np.lib.stride_tricks.as_strided(elements, tensor.shape, [step * elements.itemsize for step in tensor.strides],
                                               writeable=False)


def _form(start: bytes) -> Union[Type[_Archive], Type[_Sequence]]:
    if start.startswith(_ZIP):
        return _Archive
    if start == _OLD:
        return _Sequence
    raise Refused("is no file of torch.save")
