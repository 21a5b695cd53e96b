# SPDX-License-Identifier: Apache-2.0
"""Smalti's library in Python: PixArt text-to-image models as StarPU task graphs (docs/python.md).

    import smalti

    with smalti.Pipeline() as pipeline:
        image = pipeline.generate("a red star above a blue ring on a white background", seed=1)[0]

Images, latents and states of texts are NumPy arrays; what the library refuses is a smalti.Error."""

from .dataset import extract
from .library import Error
from .pipeline import Pipeline, TextStates, schedulers
from .session import Session
from .vae import VAE, Encoding
from .version import __version__

__all__ = ["VAE", "Encoding", "Error", "Pipeline", "Session", "TextStates", "__version__", "extract", "schedulers"]
