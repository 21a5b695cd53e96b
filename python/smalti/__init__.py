# SPDX-License-Identifier: Apache-2.0
"""Smalti's library in Python: PixArt text-to-image models as StarPU task graphs (docs/python.md).

    import smalti

    with smalti.Pipeline() as pipeline:
        image = pipeline.generate("a red star above a blue ring on a white background", seed=1)[0]

Images, latents and states of texts are NumPy arrays; what the library refuses is a smalti.Error."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, List

from .version import __version__  # noqa: F401

if TYPE_CHECKING:
    from .api import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        """Opens libsmalti when the first name of it is asked for; smalti.convert does without."""
        if name.startswith("_") and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(".api", __name__), name)

    def __dir__() -> List[str]:
        return sorted({*globals(), *__getattr__("__all__")})
