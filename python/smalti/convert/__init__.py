# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of PixArt's own code as the transformer's directory in diffusers' layout (docs/python.md). NumPy is all that this
needs: no PyTorch, and not libsmalti.

    python3 -m smalti.convert epoch_3_step_1200.pth -o transformer"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

from .output import safetensors, write
from .pickles import Refused
from .pixart import Given, plan
from .torch_file import TorchFile

__all__ = ["Converted", "Given", "Refused", "convert"]

_STATE, _AVERAGE = "state_dict", "state_dict_ema"


class Converted(NamedTuple):
    """What became of a checkpoint."""

    state: str  # the entry that was taken, "" if the file is all of it
    others: List[str]  # entries that could have been
    tensors: int
    config: Dict[str, Any]


def _state(value: Any, average: bool) -> Tuple[str, List[str], Any]:
    if not isinstance(value, dict):
        raise Refused("expected a dictionary of weights")
    states = [name for name in (_STATE, _AVERAGE) if isinstance(value.get(name), dict)]
    wanted = _AVERAGE if average else _STATE
    if wanted in states:
        return wanted, [name for name in states if name != wanted], value[wanted]
    if average:
        raise Refused(f"has no {_AVERAGE}, the average that --ema takes; it has {', '.join(states) or 'weights alone'}")
    if states:
        raise Refused(f"has no {_STATE}, but {_AVERAGE}: give --ema")
    return "", [], value


def convert(checkpoint: str, output: str, *, average: bool = False, given: Given = Given()) -> Converted:
    """Makes the directory `output`, which appears when it is complete; one that is there has to be empty."""
    target = Path(output)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Refused(f"{output}: is there, and is no empty directory: name another one")
    part = Path(f"{os.path.abspath(output)}.{os.getpid()}.part")
    try:
        with TorchFile(Path(checkpoint)) as file:
            state, others, weights = _state(file.value, average)
            config, tensors = plan(file, weights, given)
            part.mkdir()
            write(part / "diffusion_pytorch_model.safetensors", safetensors(tensors, file.array))
        write(part / "config.json", [json.dumps(config, indent=2).encode() + b"\n"])
        part.rename(target)
    except Refused as cause:
        raise Refused(f"{checkpoint}: {cause}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return Converted(state, others, sum(len(names) for _, names in tensors), config)
