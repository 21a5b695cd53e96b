# SPDX-License-Identifier: Apache-2.0
"""Reads what `smalti extract` has made: features of texts (T5) and pictures (VAE). Needs NumPy alone; with PyTorch
there is PixArtFeatures, a Dataset that gives what PixArt's training takes."""

from .features import Features
from .order import row_order, shard_order
from .shard import Damaged, Picture, Row, Shard, Text, as_float32

__all__ = ["BinBatches", "Damaged", "Features", "Picture", "PixArtFeatures", "Row", "Shard", "Text", "as_float32",
           "row_order", "shard_order"]


def __getattr__(name):
    if name in ("BinBatches", "PixArtFeatures"):
        from . import training  # imports torch
        return getattr(training, name)
    raise AttributeError(name)
