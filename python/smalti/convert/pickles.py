# SPDX-License-Identifier: Apache-2.0
"""The pickles of torch.save, executed here and not by Python's unpickler: they make plain data and tensors, import nothing,
and call nothing."""

from __future__ import annotations

import math
import pickletools
from typing import IO, Any, Callable, Dict, List, NamedTuple, Tuple


class Refused(ValueError):
    """What a file has that is damaged or not understood."""


class Dtype(NamedTuple):
    """Of elements, as safetensors and NumPy name it. bf16, which NumPy does not know, is u16."""

    name: str
    numpy: str
    bytes: int


class Storage(NamedTuple):
    """One array of elements in the file, which tensors are views of."""

    dtype: Dtype
    key: str
    elements: int

    @property
    def bytes(self) -> int:
        return self.elements * self.dtype.bytes


class Tensor(NamedTuple):
    """A view of a storage that lies within it; offset and strides count elements."""

    storage: Storage
    offset: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _storage(identity: Any) -> Storage:
    """Of a persistent identity: ("storage", dtype, key, device, elements), in old files with what it is a
    view of."""
    if type(identity) is not tuple or identity[:1] != ("storage",) or len(identity) < 5 or identity[5:] not in ((), (None,)):
        raise Refused("expected the identity of a storage that is no view")
    _, dtype, key, _, elements = identity[:5]
    if not isinstance(dtype, Dtype) or type(key) is not str or not _is_count(elements):
        raise Refused("expected a storage's dtype, key and number of elements")
    return Storage(dtype, key, elements)


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> Tensor:
    if not isinstance(storage, Storage) or not _is_count(offset):
        raise Refused("expected a tensor's storage and offset")
    if type(shape) is not tuple or type(strides) is not tuple or len(shape) != len(strides) or len(shape) > 8:
        raise Refused("expected a shape and strides of 8 dimensions at most")
    if not all(map(_is_count, shape + strides)):
        raise Refused(f"expected a shape and strides of no negative numbers, found {shape} and {strides}")
    last = offset + sum((extent - 1) * stride for extent, stride in zip(shape, strides))
    if 0 not in shape and last >= storage.elements:
        raise Refused(f"a tensor of shape {list(shape)} ends at element {last} of storage {storage.key}, which has "
                      f"{storage.elements}")
    return Tensor(storage, offset, shape, strides)


def _parameter(tensor: Any, *_: Any) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise Refused("expected a parameter's tensor")
    return tensor


def _ordered(*pairs: Any) -> Dict[Any, Any]:
    if pairs:
        raise Refused("expected an empty OrderedDict")
    return {}


# All that a pickle may name. Nothing is imported: a name stands for what is here.
_NAMES: Dict[str, Any] = {
    "collections OrderedDict": _ordered, "torch._utils _rebuild_tensor_v2": _tensor,
    "torch._utils _rebuild_parameter": _parameter,
    "torch FloatStorage": Dtype("F32", "<f4", 4), "torch HalfStorage": Dtype("F16", "<f2", 2),
    "torch BFloat16Storage": Dtype("BF16", "<u2", 2), "torch DoubleStorage": Dtype("F64", "<f8", 8),
    "torch LongStorage": Dtype("I64", "<i8", 8), "torch IntStorage": Dtype("I32", "<i4", 4),
    "torch ByteStorage": Dtype("U8", "u1", 1), "torch BoolStorage": Dtype("BOOL", "?", 1)}


class _Machine:
    """A pickle's stack, as a list for each mark that is open, and its memo."""

    def __init__(self) -> None:
        self.stacks: List[List[Any]] = [[]]
        self.memo: Dict[int, Any] = {}
        self.storages: Dict[str, Storage] = {}

    @property
    def stack(self) -> List[Any]:
        return self.stacks[-1]

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def mark(self) -> None:
        self.stacks.append([])

    def marked(self) -> List[Any]:
        """Takes what lies above the last mark."""
        items = self.stacks.pop()
        self.stacks[-1]  # there was a mark
        return items

    def last(self, count: int) -> List[Any]:
        return [self.stack.pop() for _ in range(count)][::-1]

    def set_items(self, items: List[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict or len(items) % 2:
            raise Refused("expected a dictionary and its items")
        for key, value in zip(items[::2], items[1::2]):
            if type(key) not in (str, int):  # others could be deep, and so is their hash
                raise Refused(f"expected a dictionary's key to be a text or a number, found a {type(key).__name__}")
            target[key] = value

    def append(self, items: List[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise Refused("expected a list")
        self.stack[-1].extend(items)

    def push_name(self, name: str) -> None:
        if name not in _NAMES:
            raise Refused(f"asks for {name.replace(' ', '.', 1)}, which is neither a tensor nor plain data; load it where "
                          f"it was made, and save its weights alone: torch.save(model.state_dict(), FILE)")
        self.push(_NAMES[name])

    def reduce(self) -> None:
        function, arguments = self.last(2)
        if not callable(function) or type(arguments) is not tuple:
            raise Refused("expected a function and its arguments")
        self.push(function(*arguments))

    def push_storage(self) -> None:
        storage = _storage(*self.last(1))
        if self.storages.setdefault(storage.key, storage) != storage:
            raise Refused(f"storage {storage.key} has two sizes or dtypes")
        self.push(storage)

    def build(self) -> None:
        """Drops the attributes of a dictionary: the versions of a state's modules."""
        target, _ = self.last(2)
        if type(target) is not dict:
            raise Refused("expected a dictionary and its attributes")
        self.push(target)


def _pushes(value: Any) -> Callable[[_Machine, Any], None]:
    return lambda machine, _: machine.push(value)


# What torch.save writes: protocol 2.
_OPERATIONS: Dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE"), _Machine.push),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), lambda machine, place: machine.memo.update({place: machine.stack[-1]})),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), lambda machine, place: machine.push(machine.memo[place])),
    "PROTO": lambda machine, _: None, "STOP": lambda machine, _: None,
    "NONE": _pushes(None), "NEWTRUE": _pushes(True), "NEWFALSE": _pushes(False), "EMPTY_TUPLE": _pushes(()),
    "EMPTY_DICT": lambda machine, _: machine.push({}), "EMPTY_LIST": lambda machine, _: machine.push([]),
    "MARK": lambda machine, _: machine.mark(), "TUPLE": lambda machine, _: machine.push(tuple(machine.marked())),
    "TUPLE1": lambda machine, _: machine.push(tuple(machine.last(1))),
    "TUPLE2": lambda machine, _: machine.push(tuple(machine.last(2))),
    "TUPLE3": lambda machine, _: machine.push(tuple(machine.last(3))),
    "SETITEM": lambda machine, _: machine.set_items(machine.last(2)),
    "SETITEMS": lambda machine, _: machine.set_items(machine.marked()),
    "APPEND": lambda machine, _: machine.append(machine.last(1)),
    "APPENDS": lambda machine, _: machine.append(machine.marked()),
    "GLOBAL": _Machine.push_name, "REDUCE": lambda machine, _: machine.reduce(),
    "BUILD": lambda machine, _: machine.build(),
    "BINPERSID": lambda machine, _: machine.push_storage()}


def load(file: IO[bytes]) -> Tuple[Any, Dict[str, Storage]]:
    """The value of the pickle at the file's position, behind which it is then, and all storages of its tensors."""
    machine = _Machine()
    try:
        for opcode, argument, _ in pickletools.genops(file):
            if opcode.name not in _OPERATIONS:
                raise Refused(f"{opcode.name} is no operation of a pickle by torch.save")
            _OPERATIONS[opcode.name](machine, argument)
        (value,), = machine.stacks
    except Refused:
        raise
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as cause:
        raise Refused(f"the pickle is damaged: {cause}") from None
    return value, machine.storages
