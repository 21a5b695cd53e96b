# SPDX-License-Identifier: Apache-2.0
"""The transformer of PixArt's own code under diffusers' names, and its configuration (docs/reference.md 1.3 and 1.4)."""

from __future__ import annotations

import math
import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from .pickles import Refused, Tensor
from .torch_file import TorchFile

_PREFIXES = ("base_model.", "model.", "module.")
_POSITIONS, _NULL_CAPTION = "pos_embed", "y_embedder.y_embedding"  # computed; of training alone
_FREQUENCIES = 256
_SCALES = (0.5, 1.0, 2.0, 4.0)
_FOREIGN = {r"\.attn\.(sr|norm)\.": "KV token compression", r"\.attn\.[qk]_norm\.": "norms of queries and keys",
            r"^controlnet": "a ControlNet"}


class Extents(NamedTuple):
    """What the shapes of weights tell of a model."""

    width: int
    channels: int
    patch: int
    out_channels: int
    caption_width: int
    blocks: int
    sizes: bool  # whether it is told the image's size and aspect ratio


class Given(NamedTuple):
    """What they do not always tell; None: it is to be found out."""

    image_size: Optional[int] = None
    interpolation_scale: Optional[float] = None
    heads: Optional[int] = None


class Part(NamedTuple):
    """A tensor of the file: its shape, and the names of the equal parts that its rows are in diffusers."""

    shape: Tuple[int, ...]
    names: List[str]


def _linear(name: str, rows: int, columns: Tuple[int, ...], *names: str) -> Dict[str, Part]:
    return {f"{name}.weight": Part((rows, *columns), [f"{one}.weight" for one in names]),
            f"{name}.bias": Part((rows,), [f"{one}.bias" for one in names])}


def _embedder(name: str, width: int, new: str) -> Dict[str, Part]:
    new = f"adaln_single.emb.{new}.linear"
    return {**_linear(f"{name}.mlp.0", width, (_FREQUENCIES,), f"{new}_1"),
            **_linear(f"{name}.mlp.2", width, (width,), f"{new}_2")}


def _block(number: int, width: int) -> Dict[str, Part]:
    one, old, new = (width,), f"blocks.{number}", f"transformer_blocks.{number}"
    return {
        f"{old}.scale_shift_table": Part((6, width), [f"{new}.scale_shift_table"]),
        **_linear(f"{old}.attn.qkv", 3 * width, one, f"{new}.attn1.to_q", f"{new}.attn1.to_k", f"{new}.attn1.to_v"),
        **_linear(f"{old}.attn.proj", width, one, f"{new}.attn1.to_out.0"),
        **_linear(f"{old}.cross_attn.q_linear", width, one, f"{new}.attn2.to_q"),
        **_linear(f"{old}.cross_attn.kv_linear", 2 * width, one, f"{new}.attn2.to_k", f"{new}.attn2.to_v"),
        **_linear(f"{old}.cross_attn.proj", width, one, f"{new}.attn2.to_out.0"),
        **_linear(f"{old}.mlp.fc1", 4 * width, one, f"{new}.ff.net.0.proj"),
        **_linear(f"{old}.mlp.fc2", width, (4 * width,), f"{new}.ff.net.2")}


def _parts(e: Extents) -> Dict[str, Part]:
    """All weights of such a model, by their names in PixArt's code."""
    parts = {
        **_linear("x_embedder.proj", e.width, (e.channels, e.patch, e.patch), "pos_embed.proj"),
        **_embedder("t_embedder", e.width, "timestep_embedder"),
        **_linear("t_block.1", 6 * e.width, (e.width,), "adaln_single.linear"),
        **_linear("y_embedder.y_proj.fc1", e.width, (e.caption_width,), "caption_projection.linear_1"),
        **_linear("y_embedder.y_proj.fc2", e.width, (e.width,), "caption_projection.linear_2"),
        **_linear("final_layer.linear", e.patch * e.patch * e.out_channels, (e.width,), "proj_out"),
        "final_layer.scale_shift_table": Part((2, e.width), ["scale_shift_table"])}
    if e.sizes:
        parts.update({**_embedder("csize_embedder", e.width // 3, "resolution_embedder"),
                      **_embedder("ar_embedder", e.width // 3, "aspect_ratio_embedder")})
    for number in range(e.blocks):
        parts.update(_block(number, e.width))
    return parts


def _shape(weights: Dict[str, Tensor], name: str, rank: int) -> Tuple[int, ...]:
    if name not in weights:
        raise Refused(f"has no {name}, which each checkpoint of PixArt's own code has")
    shape = weights[name].shape
    if len(shape) != rank or 0 in shape:
        raise Refused(f"{name}: expected {rank} dimensions, found the shape {list(shape)}")
    return shape


def _extents(weights: Dict[str, Tensor]) -> Extents:
    width, channels, patch, _ = _shape(weights, "x_embedder.proj.weight", 4)
    blocks = {int(found[1]) for found in (re.match(r"blocks\.(\d{1,3})\.", name) for name in weights) if found}
    return Extents(width, channels, patch, _shape(weights, "final_layer.linear.weight", 2)[0] // patch**2,
                   _shape(weights, "y_embedder.y_proj.fc1.weight", 2)[1], max(blocks, default=-1) + 1,
                   "csize_embedder.mlp.0.weight" in weights)


def _unprefixed(state: Dict[Any, Any]) -> Dict[str, Tensor]:
    weights: Dict[str, Tensor] = {}
    for key, tensor in state.items():
        if not isinstance(key, str) or not isinstance(tensor, Tensor):
            raise Refused(f"expected names of tensors alone, found {str(key)[:80]!r}, a {type(tensor).__name__}")
        name = key
        while prefix := next((prefix for prefix in _PREFIXES if name.startswith(prefix)), ""):
            name = name[len(prefix):]
        if name in weights:
            raise Refused(f"has two tensors that are {name} without {', '.join(_PREFIXES)}")
        weights[name] = tensor
    return weights


def _check(weights: Dict[str, Tensor], parts: Dict[str, Part]) -> None:
    for name, tensor in weights.items():
        for pattern, what in _FOREIGN.items():
            if re.search(pattern, name):
                raise Refused(f"has {name}, which belongs to {what}: Smalti runs no such model")
        if name in (_POSITIONS, _NULL_CAPTION):
            continue
        if name not in parts:
            raise Refused(f"has {name}, which no checkpoint of PixArt-alpha or PixArt-Sigma has")
        if tensor.shape != parts[name].shape:
            raise Refused(f"{name}: expected the shape {list(parts[name].shape)}, found {list(tensor.shape)}")
        if tensor.storage.dtype.name not in ("F32", "F16", "BF16"):
            raise Refused(f"{name}: expected F32, F16 or BF16, found {tensor.storage.dtype.name}")
    missing = next((name for name in parts if name not in weights), None)
    if missing is not None:
        raise Refused(f"has no {missing}, which a model of {len([name for name in parts if name.endswith('qkv.bias')])} "
                      f"blocks has")


def _first_row(base: int, width: int, scale: float) -> NDArray[np.float64]:
    """The positions of an image's first row of patches, at the native size (docs/reference.md 3.2)."""
    quarter = width // 4
    angles = np.outer(np.arange(base) / scale, 10000.0 ** (-np.arange(quarter) / quarter))
    zeros = np.zeros_like(angles)
    return np.hstack([np.sin(angles), np.cos(angles), zeros, zeros + 1])


def _floats(array: NDArray[Any], dtype: str) -> NDArray[np.float32]:
    return (array.astype("<u4") << 16).view("<f4") if dtype == "BF16" else array.astype("<f4")


def _found_size(file: TorchFile, positions: Tensor, e: Extents) -> Tuple[int, List[float]]:
    """The patches in a row of the images that a model was made for, and the scales that give its positions."""
    base = math.isqrt(positions.shape[1]) if len(positions.shape) == 3 else 0
    if base == 0 or positions.shape != (1, base * base, e.width):
        raise Refused(f"{_POSITIONS}: expected the shape [1, a square number, {e.width}], found {list(positions.shape)}")
    found = _floats(file.array(positions)[0, :base], positions.storage.dtype.name)
    return base, [scale for scale in _SCALES if np.abs(_first_row(base, e.width, scale) - found).max() < 0.02]


def _size(file: TorchFile, weights: Dict[str, Tensor], e: Extents, given: Given) -> Tuple[int, float]:
    """The config's sample_size and interpolation_scale."""
    scales: List[float] = []
    size = None
    if given.image_size is not None:
        size, left = divmod(given.image_size, 8)
        if size <= 0 or left or size % e.patch:
            raise Refused(f"expected a size of images that is a multiple of {8 * e.patch}, found {given.image_size}")
    if _POSITIONS in weights:
        base, scales = _found_size(file, weights[_POSITIONS], e)
        if size not in (None, base * e.patch):
            raise Refused(f"its {_POSITIONS} is that of images of {8 * base * e.patch} pixels a side, not of "
                          f"{given.image_size}")
        size = base * e.patch
    elif size is not None:
        alpha = e.sizes or (_NULL_CAPTION in weights and weights[_NULL_CAPTION].shape[0:1] == (120,))
        known = {32: 1.0 if alpha else 0.5, 64: 1.0, 128: 2.0, 256: 4.0}
        scales = [known[size]] if size in known else []
    if size is None:
        raise Refused(f"has no {_POSITIONS}, which tells the size of its images: give --image-size N, as 512 or 1024")
    if given.interpolation_scale is not None:
        if not 1e-3 <= given.interpolation_scale <= 1e3:
            raise Refused(f"expected an interpolation scale from 0.001 to 1000, found {given.interpolation_scale}")
        scales = [given.interpolation_scale]
    if len(scales) != 1:
        raise Refused("does not tell the scale of its positions: give --interpolation-scale, which is pe_interpolation in the "
                      "configuration of its training")
    return size, scales[0]


def _heads(e: Extents, given: Given) -> int:
    if given.heads is None and e.width % 72:
        raise Refused(f"has the width {e.width}, which is no multiple of 72: give --heads N, the number of attention heads")
    heads = e.width // 72 if given.heads is None else given.heads
    if heads < 1 or e.width % heads:
        raise Refused(f"expected a number of heads that divides the width {e.width}, found {heads}")
    return heads


def plan(file: TorchFile, state: Dict[Any, Any], given: Given) -> Tuple[Dict[str, Any], List[Tuple[Tensor, List[str]]]]:
    """Of a state_dict: config.json, and its tensors with the names of their rows' parts."""
    weights = _unprefixed(state)
    e = _extents(weights)
    parts = _parts(e)
    _check(weights, parts)
    heads = _heads(e, given)
    size, scale = _size(file, weights, e, given)
    config = {
        "_class_name": "PixArtTransformer2DModel", "activation_fn": "gelu-approximate", "attention_bias": True,
        "attention_head_dim": e.width // heads, "attention_type": "default", "caption_channels": e.caption_width,
        "cross_attention_dim": e.width, "dropout": 0.0, "in_channels": e.channels, "interpolation_scale": scale,
        "norm_elementwise_affine": False, "norm_eps": 1e-6, "norm_num_groups": 32, "norm_type": "ada_norm_single",
        "num_attention_heads": heads, "num_embeds_ada_norm": 1000, "num_layers": e.blocks, "out_channels": e.out_channels,
        "patch_size": e.patch, "sample_size": size, "upcast_attention": False, "use_additional_conditions": e.sizes}
    return config, [(weights[name], part.names) for name, part in parts.items()]
