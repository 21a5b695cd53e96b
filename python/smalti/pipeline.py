# SPDX-License-Identifier: Apache-2.0
"""A PixArt pipeline: prompts to images, images to latents and back, texts to T5's states, as NumPy arrays."""

from __future__ import annotations

import operator
import warnings
import weakref
from contextlib import ExitStack
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .library import Call, Options, Resource, Text, c_string, check, exception, ffi, fields, lib, string
from .session import Closable, Session, open_session
from .vae import VAE, Encoding, Progress

Prompts = Union[str, Sequence[str]]
OnStep = Callable[[int, int], None]


class TextStates(NamedTuple):
    """A text as the transformer reads it, without padding. The arrays are the library's memory, which is freed when none of
    them is used any more."""

    ids: NDArray[np.int32]  # [tokens]
    values: NDArray[np.float32]  # [tokens, width]: T5's last hidden states


class Output(NamedTuple):
    """What Pipeline.__call__() makes: a list of Pillow's images, or an array."""

    images: Any


class Pipeline(Closable):
    """A model in diffusers' layout at `directory`, or (None) the embedded one, with `precision` "f32", "bf16", "f16",
    "tf32", "w8a8" or "w8a8-bf16", and its text encoder's weights as `text_encoder_precision`, "stored", "int8" or "w8a8". Directories of single
    components can be given. `lora` is an adapter that changes the weights, or several: {path: weight}. Without a session
    it takes the one that is open, or opens one with its defaults, which is closed with the last pipeline on it."""

    def __init__(self, directory: Optional[Text] = None, *, session: Optional[Session] = None,
                 precision: Optional[str] = None, variant: Optional[str] = None, tokenizer: Optional[Text] = None,
                 text_encoder: Optional[Text] = None, transformer: Optional[Text] = None, vae: Optional[Text] = None,
                 scheduler: Optional[Text] = None, text_encoder_precision: Optional[str] = None,
                 lora: Union[None, Text, Mapping[Text, float]] = None) -> None:
        options = Options("smalti_model_options", lib.smalti_model_defaults, directory=directory, precision=precision,
                          variant=variant, tokenizer=tokenizer, text_encoder=text_encoder, transformer=transformer, vae=vae,
                          scheduler=scheduler, text_encoder_precision=text_encoder_precision)
        if lora is not None:
            _set_adapters(options, lora if isinstance(lora, Mapping) else {lora: 1})
        self.session = session or open_session() or _default_session()
        self._vae: Optional[VAE] = None
        of_vae = {"w8a8": "f32", "w8a8-bf16": "bf16"}.get(precision, precision)  # integers are the transformer's alone
        self._vae_options: Dict[str, Any] = {"directory": vae or directory, "variant": variant, "precision": of_vae}
        parent = self.session._resource
        try:
            model = check(lib.smalti_model_open, parent.pointer, options.struct)
        except BaseException:
            self._close_own()
            raise
        super().__init__(Resource("pipeline", model, lib.smalti_model_close, parent))
        info = ffi.new("struct smalti_model_info *")
        lib.smalti_model_info(model, info)
        self.info: Dict[str, Any] = fields(info[0])
        if self.info["unused"]:
            warnings.warn(self.info["unused"], stacklevel=2)

    def close(self) -> None:
        if self._vae is not None:
            self._vae.close()
        super().close()
        self._close_own()

    def _close_own(self) -> None:
        if self.session in _default_sessions and not self.session._resource.used:
            self.session.close()

    @classmethod
    def from_pretrained(cls, directory: Text, *, torch_dtype: Any = None, **options: Any) -> Pipeline:
        """Pipeline(directory, ...), as diffusers calls it. `torch_dtype` may be PyTorch's or its name, for `precision`."""
        if torch_dtype is not None:
            options["precision"] = _precision(torch_dtype)
        return cls(directory, **options)

    def __call__(self, prompt: Prompts, negative_prompt: Optional[str] = None, *, output_type: str = "pil",
                 **options: Any) -> Output:
        """generate(), as diffusers calls it: images are Pillow's, or with output_type "np" or "latent" an array."""
        if output_type != "pil":
            return Output(self.generate(prompt, negative_prompt, output_type=output_type, **options))
        from_array = _pillow()
        return Output([from_array(pixels) for pixels in self.generate(prompt, negative_prompt, **options)])

    def generate(self, prompt: Prompts, negative_prompt: Optional[str] = None, *, height: Optional[int] = None,
                 width: Optional[int] = None, num_inference_steps: Optional[int] = None,
                 guidance_scale: Optional[float] = None, num_images_per_prompt: Optional[int] = None,
                 seed: Union[int, Sequence[int]] = 0, scheduler: Optional[str] = None, eta: Optional[float] = None,
                 use_resolution_binning: Optional[bool] = None, cleaning: Optional[str] = None,
                 latents: Optional[ArrayLike] = None, image: Optional[ArrayLike] = None, strength: Optional[float] = None,
                 mask: Optional[ArrayLike] = None, keep_original: Optional[bool] = None, posterior: Optional[str] = None,
                 lora: Optional[str] = None, step_cache: Optional[str] = None, strategy: Optional[str] = None,
                 shares: Optional[str] = None, output_type: str = "np", progress: Optional[Progress] = None,
                 on_step: Optional[OnStep] = None) -> NDArray[Any]:
        """Images of a prompt, or of each of several: uint8 [images, height, width, 3], those of one prompt together. None
        is what the command does: the model's size, 20 steps, guidance 4.5, an image, the model's scheduler. A seed is for
        each prompt, or one for all. `latents` float32 [images, channels, height, width] are the first noise instead.
        `image` uint8 [height, width, 3] is what all begin with instead, resized, as `strength` says; where `mask`
        [height, width], uint8 or bool, is black it is kept. `lora` is an adapter for these images, "PATH[:WEIGHT]", or
        several with commas. `step_cache` is "bound:X" or "first-block:X": steps that change little are skipped.
        With output_type "latent" the last latents come, which decode() takes, and nothing is decoded. `progress` hears
        the completed fraction of all images, from 0 to 1, about ten times per second. `on_step` hears each step once, in
        order, when all images have it behind them: its number, from 1, and the number of steps. Ctrl-C ends the call, as
        whatever these raise."""
        prompts = [prompt] if isinstance(prompt, str) else list(prompt)
        seeds = _seeds(seed, len(prompts))
        if not prompts or len(seeds) != len(prompts):
            raise ValueError(f"expected a prompt or more, and a seed or one for each prompt, found {len(prompts)} prompts "
                             f"and {len(seeds)} seeds")
        if output_type not in ("np", "latent"):
            raise ValueError(f'output_type: expected "np" or "latent", found {output_type!r}')
        each = num_images_per_prompt or 1
        noise = None if latents is None else _first_noise(latents, len(prompts) * each)
        pictures = {**_picture("image", image, (3,)), **_picture("mask", mask, ())}
        requests = [
            Options("smalti_request", lib.smalti_request_defaults, prompt=one, negative_prompt=negative_prompt,
                    height=height, width=width, steps=num_inference_steps, guidance=guidance_scale,
                    images=num_images_per_prompt, seed=seeds[number], scheduler=scheduler, eta=eta,
                    resolution_binning=use_resolution_binning, cleaning=cleaning, lora=lora, step_cache=step_cache,
                    strategy=strategy, shares=shares,
                    strength=strength, keep_original=keep_original, posterior=posterior, **pictures)
            for number, one in enumerate(prompts)]
        with self._resource.call() as call, ExitStack() as open_things:
            plans = []
            for number, request in enumerate(requests):
                if noise is not None:
                    part = noise[number * each:(number + 1) * each]
                    self._check_noise(request, noise)
                    request.struct.latents = request.keep(ffi.from_buffer("float[]", part))
                    request.struct.latents_count = part.size
                plans.append(check(lib.smalti_request_resolve, self._resource.pointer, request.struct))
                open_things.callback(lib.smalti_plan_free, plans[-1])
                self._warn_of_unread(prompts[number], request.struct.cleaning)
            work = _Images(self._resource.pointer, call, requests[0].struct, len(prompts) * each, output_type, progress,
                           on_step)
            open_things.callback(lib.smalti_batch_close, work.batch)  # waits
            try:
                for number in range(work.count):
                    work.submit(plans[number // each], number, number % each)
                lib.smalti_batch_wait(work.batch)
            except BaseException:
                call.cancel()
                raise
            if work.failed is not None:
                raise work.failed
        return work.made

    def _check_noise(self, request: Options, noise: NDArray[np.float32]) -> None:
        shape = ffi.new("int64_t[3]")
        plan = check(lib.smalti_request_resolve, self._resource.pointer, ffi.new("struct smalti_request *", request.struct[0]))
        lib.smalti_plan_latents(plan, shape)
        lib.smalti_plan_free(plan)
        if noise.shape[1:] != tuple(shape):
            raise ValueError(f"latents: expected {[len(noise), *shape]}, found {list(noise.shape)}")

    def _warn_of_unread(self, prompt: str, cleaning: int) -> None:
        unread = ffi.new("struct smalti_unread *")
        check(lib.smalti_prompt_unread, self._resource.pointer, c_string(prompt), cleaning, unread)
        truncated, unknown = string(unread.truncated), string(unread.unknown)
        lib.smalti_unread_free(unread)
        if truncated is not None:
            warnings.warn(f"only the first {self.info['max_tokens'] - 1} tokens of the prompt are read, which leaves out "
                          f'"{truncated}"', stacklevel=3)
        if unknown is not None:
            warnings.warn(f"words that the model was not trained on: {unknown}", stacklevel=3)

    def encode_prompt(self, prompt: Prompts, *, cleaning: str = "basic") -> List[TextStates]:
        """The states of a prompt, or of each of several."""
        prompts = [prompt] if isinstance(prompt, str) else list(prompt)
        kind = Options("smalti_request", lib.smalti_request_defaults, cleaning=cleaning)
        states = ffi.new("struct smalti_text_states[]", len(prompts))
        with self._resource.call():
            check(lib.smalti_text_encode, self._resource.pointer, kind.strings(prompts), len(prompts), kind.struct.cleaning,
                  states)
        return [_owned(states, number) for number in range(len(prompts))]

    @property
    def vae(self) -> VAE:
        """The pipeline's VAE, opened when it is first asked for."""
        if self._vae is None:
            with self._resource.call():
                self._vae = VAE(session=self.session, **self._vae_options)
        return self._vae

    def encode(self, image: ArrayLike, *, tile_rows: Optional[int] = None, progress: Optional[Progress] = None) -> Encoding:
        """VAE.encode()"""
        return self.vae.encode(image, tile_rows=tile_rows, progress=progress)

    def decode(self, latents: ArrayLike, *, raw: bool = False, dtype: DTypeLike = np.uint8,
               tile_rows: Optional[int] = None, progress: Optional[Progress] = None) -> NDArray[Any]:
        """VAE.decode()"""
        return self.vae.decode(latents, raw=raw, dtype=dtype, tile_rows=tile_rows, progress=progress)


def _set_adapters(options: Options, adapters: Mapping[Text, float]) -> None:
    values = [{"path": options.keep(c_string(path)), "weight": weight} for path, weight in adapters.items()]
    options.struct.loras = options.keep(ffi.new("struct smalti_lora[]", values))
    options.struct.lora_count = len(values)


_default_sessions: weakref.WeakSet[Session] = weakref.WeakSet()  # those that pipelines have opened


def _default_session() -> Session:
    session = Session()
    _default_sessions.add(session)
    return session


def _precision(torch_dtype: Any) -> str:
    names = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
    name = str(torch_dtype).replace("torch.", "")
    if name not in names:
        raise ValueError(f"torch_dtype: expected one of {', '.join(names)}, found {torch_dtype}")
    return names[name]


def _pillow() -> Callable[[NDArray[Any]], Any]:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(f'{error}: images of output_type "pil" are Pillow\'s: `pip install pillow`, or give output_type="np"'
                          ) from None
    return Image.fromarray


def schedulers() -> List[str]:
    """Names that generate() takes."""
    names: List[str] = []
    while (name := string(lib.smalti_scheduler_name(len(names)))) is not None:
        names.append(name)
    return names


def _seeds(seed: Union[int, Sequence[int]], prompts: int) -> List[int]:
    try:
        return [operator.index(seed)] * prompts  # type: ignore[arg-type]
    except TypeError:
        pass
    try:
        return [operator.index(one) for one in seed]  # type: ignore[union-attr]
    except TypeError:
        raise TypeError(f"seed: expected a whole number, or one for each prompt, found {seed!r}") from None


def _first_noise(latents: ArrayLike, images: int) -> NDArray[np.float32]:
    values = np.ascontiguousarray(latents, dtype=np.float32)
    if values.ndim != 4 or values.shape[0] != images:
        raise ValueError(f"latents: expected [{images}, channels, height, width], found {list(values.shape)}")
    return values


def _picture(name: str, pixels: Optional[ArrayLike], channels: Tuple[int, ...]) -> Dict[str, Any]:
    """The fields of a request that begins with it."""
    if pixels is None:
        return {}
    values = np.asarray(pixels)
    if not channels and values.dtype == bool:
        values = values * np.uint8(255)
    if values.dtype != np.uint8 or values.ndim != 2 + len(channels) or values.shape[2:] != channels:
        raise ValueError(f"{name}: expected uint8 {['height', 'width', *channels]}, found {values.dtype} {list(values.shape)}")
    height, width = values.shape[:2]
    return {name: ffi.from_buffer("unsigned char[]", np.ascontiguousarray(values)), f"{name}_height": height,
            f"{name}_width": width}


def _owned(states: Any, number: int) -> TextStates:
    """Arrays that keep what they show: both hold the struct, whose last user frees it."""
    one = states[number]
    owner = ffi.gc(ffi.new("struct smalti_text_states *", one), lib.smalti_text_states_free)

    def array(field: str, dtype: Any, shape: Tuple[int, ...]) -> NDArray[Any]:
        # The array's base holds the pointer, and this the owner, by what is no Python code: a signal's exception in
        # there would be lost.
        pointer = ffi.gc(getattr(owner, field), partial(operator.is_, owner))
        data = ffi.buffer(pointer, int(np.prod(shape)) * np.dtype(dtype).itemsize)
        return np.frombuffer(data, dtype).reshape(shape)

    return TextStates(array("ids", np.int32, (one.tokens,)), array("values", np.float32, (one.tokens, one.width)))


class _Images:
    """A batch of one generate(), and what becomes of its images."""

    def __init__(self, model: Any, call: Call, request: Any, count: int, output_type: str,
                 progress: Optional[Progress], on_step: Optional[OnStep]) -> None:
        self.count = count
        self.failed: Optional[Exception] = None
        self._call, self._progress, self._on_step, self._complete = call, progress, on_step, 0
        self._steps, self._told = [0] * count, 0  # that each image has behind it; that on_step has heard
        self._latents: List[Optional[NDArray[np.float32]]] = [None] * count
        self._pixels: Optional[NDArray[np.uint8]] = None
        if output_type == "np":
            self._pixels = np.empty((count, request.height, request.width, 3), np.uint8)
        self.batch = check(lib.smalti_batch_open, model)
        call.cancel = lambda: lib.smalti_batch_cancel(self.batch)
        set_callback = lib.smalti_batch_set_callback
        set_callback(self.batch, call.callback(ffi.typeof(set_callback).args[1], self._on_progress), ffi.NULL)

    def _on_progress(self, _user: Any, now: Any) -> None:
        if self._progress is not None:
            images = now.images if now.active else 0
            self._progress((self._complete + images) / self.count)  # else this is where Python sees Ctrl-C

    def _tell_steps(self, number: int, behind: int, steps: int) -> None:
        """An image has so many steps behind it: on_step hears those that all have."""
        self._steps[number] = behind
        for step in range(self._told + 1, min(self._steps) + 1):
            self._told = step
            self._on_step(step, steps)  # type: ignore[misc]

    def submit(self, plan: Any, number: int, image: int) -> None:
        callbacks = ffi.new("struct smalti_image_callbacks *")

        def rows(_user: Any, first: int, count: int, rgb: Any, _error: Any) -> int:
            pixels = self._pixels[number]  # type: ignore[index]
            ffi.memmove(pixels[first:first + count], rgb, count * pixels.strides[0])
            return 0

        def latents(_user: Any, shape: Any, values: Any, _error: Any) -> int:
            made = np.empty(tuple(shape[0:3]), np.float32)
            ffi.memmove(made, values, made.nbytes)
            self._latents[number] = made
            return 0

        def progress(_user: Any, now: Any) -> None:
            decoding = now.stage == lib.SMALTI_STAGE_DECODING
            self._tell_steps(number, now.steps if decoding else now.step - 1, now.steps)

        def done(_user: Any, status: int, error: Any) -> None:
            self._complete += 1
            if status != 0 and self.failed is None:
                self.failed = exception(error)
                self._call.cancel()

        wanted = latents if self._pixels is None else rows
        setattr(callbacks, wanted.__name__, self._call.callback(ffi.typeof(getattr(callbacks, wanted.__name__)), wanted, -1))
        if self._on_step is not None:
            callbacks.progress = self._call.callback(ffi.typeof(callbacks.progress), progress)
        callbacks.done = self._call.callback(ffi.typeof(callbacks.done), done)
        check(lib.smalti_batch_submit, self.batch, plan, image, callbacks)

    @property
    def made(self) -> NDArray[Any]:
        return np.stack(self._latents) if self._pixels is None else self._pixels  # type: ignore[arg-type]
