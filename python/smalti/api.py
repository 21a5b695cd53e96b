# SPDX-License-Identifier: Apache-2.0
"""What the package offers by its own name."""

from .dataset import extract
from .library import Error
from .pipeline import Pipeline, TextStates, schedulers
from .session import Session
from .vae import VAE, Encoding

__all__ = ["VAE", "Encoding", "Error", "Pipeline", "Session", "TextStates", "extract", "schedulers"]
