# SPDX-License-Identifier: Apache-2.0
"""What is written: files that are on the disk when they are there, and the bytes of a file of safetensors, tensor by tensor."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from .pickles import Tensor

Bytes = Union[bytes, memoryview]


def write(path: Path, pieces: Iterable[Bytes]) -> None:
    with open(path, "xb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())


def safetensors(tensors: List[Tuple[Tensor, List[str]]], read: Callable[[Tensor], NDArray[Any]]) -> Iterator[Bytes]:
    """Each tensor's rows are cut into as many equal parts as it has names."""
    entries: Dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for tensor, names in tensors:
        rows, *columns = tensor.shape
        for name in names:
            begin, end = end, end + tensor.elements // len(names) * tensor.storage.dtype.bytes
            entries[name] = {"dtype": tensor.storage.dtype.name, "shape": [rows // len(names), *columns],
                             "data_offsets": [begin, end]}
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    yield struct.pack("<Q", len(header)) + header
    for tensor, _ in tensors:
        yield np.ascontiguousarray(read(tensor)).data
