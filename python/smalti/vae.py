# SPDX-License-Identifier: Apache-2.0
"""Images to latents and back, by the VAE alone."""

from __future__ import annotations

import operator
import threading
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .library import Call, Options, Resource, Text, check, ffi, fields, lib
from .session import Closable, Session

Progress = Callable[[float], None]
_SAMPLES = {"uint8": "u8", "uint16": "u16", "float32": "f32"}


class Encoding(NamedTuple):
    """The distribution of an image's latents, as the VAE gives it: float32 [channels, height, width], unscaled."""

    mean: NDArray[np.float32]
    std: NDArray[np.float32]


class VAE(Closable):
    """A pipeline's VAE, or one alone, at `directory` (None: the embedded model's). One thread at a time uses it; others
    wait."""

    def __init__(self, directory: Optional[Text] = None, *, session: Session, variant: Optional[str] = None,
                 precision: Optional[str] = None) -> None:
        self._options = Options("smalti_vae_options", lib.smalti_vae_defaults, directory=directory, variant=variant,
                                precision=precision)
        self._session = session
        self._turn = threading.Lock()
        self._spent = False  # it was cancelled, and refuses all that follows
        info = ffi.new("struct smalti_vae_info *")
        super().__init__(self._open())
        lib.smalti_vae_info(self._resource.pointer, info)
        self.info: Dict[str, Any] = fields(info[0])

    def _open(self) -> Resource:
        parent = self._session._resource
        return Resource("VAE", check(lib.smalti_vae_open, parent.pointer, self._options.struct), lib.smalti_vae_close,
                        parent)

    @contextmanager
    def _call(self) -> Iterator[Call]:
        with self._turn:
            if self._spent:
                self._resource.close()
                self._hold(self._open())
                self._spent = False
            pointer = self._resource.pointer

            def cancel() -> None:
                self._spent = True
                lib.smalti_vae_cancel(pointer)

            with self._resource.call(cancel) as call:
                yield call

    def encode(self, image: ArrayLike, *, tile_rows: Optional[int] = None, progress: Optional[Progress] = None) -> Encoding:
        """Of uint8 [height, width, 3], sides multiples of info["latent_pixels"]. `progress` hears the completed fraction,
        from 0 to 1."""
        pixels = np.asarray(image)
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
            raise ValueError(f"image: expected uint8 [height, width, 3], found {pixels.dtype} {list(pixels.shape)}")
        height, width = pixels.shape[:2]
        shape = (self.info["latent_channels"], height // self.info["latent_pixels"], width // self.info["latent_pixels"])
        made = Encoding(np.empty(shape, np.float32), np.empty(shape, np.float32))

        def rows(_user: Any, first: int, count: int, rgb: Any, _error: Any) -> int:
            part = pixels[first:first + count]
            taken = np.frombuffer(ffi.buffer(rgb, part.size * 4), np.float32).reshape(part.shape)
            np.divide(part, 127.5, out=taken, dtype=np.float32)
            np.subtract(taken, 1, out=taken)
            return 0

        encoding = ffi.new("struct smalti_vae_encoding *")
        encoding.mean = mean = ffi.from_buffer("float[]", made.mean)
        encoding.std = std = ffi.from_buffer("float[]", made.std)
        self._run(lib.smalti_vae_encode_image, encoding, rows, height, width, tile_rows, progress)
        del mean, std  # until here the arrays are the library's, too
        return made

    def decode(self, latents: ArrayLike, *, raw: bool = False, dtype: DTypeLike = np.uint8,
               tile_rows: Optional[int] = None, progress: Optional[Progress] = None) -> NDArray[Any]:
        """Of float32 [channels, height, width], in the diffusion model's scale, or with `raw` in the VAE's own, as `mean`
        of encode(). An image [height, width, 3] of uint8, uint16, or float32 (about -1 to 1, not clamped)."""
        values = np.ascontiguousarray(latents, dtype=np.float32)
        channels, factor = self.info["latent_channels"], self.info["latent_pixels"]
        if values.ndim != 3 or values.shape[0] != channels:
            raise ValueError(f"latents: expected [{channels}, height, width], found {list(values.shape)}")
        wanted = np.dtype(dtype)
        kind = wanted.newbyteorder("=")
        if kind.name not in _SAMPLES:
            raise ValueError(f"dtype: expected one of {', '.join(_SAMPLES)}, found {kind.name}")
        image = np.empty((values.shape[1] * factor, values.shape[2] * factor, 3), kind)
        target = ffi.from_buffer("char[]", image, require_writable=True)

        def rows(_user: Any, first: int, count: int, rgb: Any, _error: Any) -> int:
            ffi.memmove(target + first * image.strides[0], rgb, count * image.strides[0])
            return 0

        decoding = ffi.new("struct smalti_vae_decoding *")
        decoding.latents = source = ffi.from_buffer("float[]", values)
        decoding.raw = bool(raw)
        decoding.samples = getattr(lib, f"SMALTI_SAMPLES_{_SAMPLES[kind.name].upper()}")
        self._run(lib.smalti_vae_decode_image, decoding, rows, image.shape[0], image.shape[1], tile_rows, progress)
        del source
        return image.astype(wanted, copy=False)

    def _run(self, function: Callable[..., int], job: Any, rows: Callable[..., int], height: int, width: int,
             tile_rows: Optional[int], progress: Optional[Progress]) -> None:
        """Decodes or encodes; `job` is the struct of either."""

        def on_progress(_user: Any, share: float) -> None:
            if progress is not None:
                progress(share)  # else this is where Python sees Ctrl-C

        with self._call() as call:
            job.request.height, job.request.width, job.request.tile_rows = height, width, operator.index(tile_rows or 0)
            job.request.on_progress = call.callback(ffi.typeof(job.request.on_progress), on_progress)
            job.rows = call.callback(ffi.typeof(job.rows), rows, -1)
            check(function, self._resource.pointer, job)

    def sample(self, encoding: Encoding, seed: int = 0) -> NDArray[np.float32]:
        """Latents in the diffusion model's scale, drawn with torch's noise of that seed."""
        mean, std = (np.ascontiguousarray(values, dtype=np.float32) for values in encoding)
        if mean.shape != std.shape or mean.ndim != 3:
            raise ValueError(f"encoding: expected mean and std of one shape [channels, height, width], found "
                             f"{list(mean.shape)} and {list(std.shape)}")
        latents = np.empty_like(mean)
        with self._resource.call():
            lib.smalti_vae_sample(self._resource.pointer, mean.size, mean.shape[1] * mean.shape[2],
                                  ffi.from_buffer("float[]", mean), ffi.from_buffer("float[]", std), operator.index(seed) % 2**64,
                                  ffi.from_buffer("float[]", latents))
        return latents
