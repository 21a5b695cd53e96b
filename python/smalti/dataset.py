# SPDX-License-Identifier: Apache-2.0
"""The features of a data set's captions and images, into a directory that smalti_features reads."""

from __future__ import annotations

import warnings
from os import PathLike
from typing import Any, Callable, Dict, Optional, Sequence, Union

from .library import Options, Text, check, ffi, fields, lib, string
from .session import Session

_CAPTIONS = 8  # SMALTI_FEATURES_CAPTIONS_MAX


def extract(inputs: Union[Text, Sequence[Text]], output: Text, *, session: Session, directory: Optional[Text] = None,
            precision: Optional[str] = None, variant: Optional[str] = None, tokenizer: Optional[Text] = None,
            text_encoder: Optional[Text] = None, vae: Optional[Text] = None, image_root: Optional[Text] = None,
            text: bool = True, images: bool = True, captions: Sequence[str] = (),
            cleaning: Optional[str] = None, max_tokens: Optional[int] = None, image_size: Optional[int] = None,
            fit: Optional[str] = None, dtype: Optional[str] = None, compression: Optional[str] = None,
            first: Optional[int] = None, end: Optional[int] = None, part: Optional[int] = None,
            parts: Optional[int] = None, shard_items: Union[int, str, None] = None, shard_bytes: Optional[int] = None,
            retry_failed: Optional[bool] = None, append: Optional[bool] = None,
            progress: Optional[Callable[[Dict[str, Any]], None]] = None) -> Dict[str, Any]:
    """As `smalti extract` (docs/extract.md): the same call goes on where another ended, for whatever reason. `directory`
    and the next five are of the model, the others the options of smalti/extract.h (`dtype` "f32", "f16" or "bf16",
    `shard_items` a number or "auto"), where None is the default. `progress` hears several times a second how far it is, as
    what is returned at the end: items, done, made, failed, ... What it raises, and Ctrl-C, end the call; all that was
    complete is kept."""
    model = Options("smalti_model_options", lib.smalti_model_defaults, directory=directory, precision=precision,
                    variant=variant, tokenizer=tokenizer, text_encoder=text_encoder, vae=vae)
    options = Options("smalti_extract_options", lib.smalti_extract_defaults, output=output, image_root=image_root, text=text,
                      images=images, cleaning=cleaning, max_tokens=max_tokens, image_size=image_size, fit=fit, type=dtype,
                      compression=compression, first=first, end=end, part=part, parts=parts,
                      shard_items=lib.SMALTI_SHARD_ITEMS_AUTO if shard_items == "auto" else shard_items,
                      shard_bytes=shard_bytes, retry_failed=retry_failed, append=append)
    listed = [inputs] if isinstance(inputs, (str, bytes, PathLike)) else list(inputs)
    if len(captions) > _CAPTIONS:
        raise ValueError(f"captions: expected {_CAPTIONS} at most, found {len(captions)}")
    struct = options.struct
    struct.inputs, struct.input_count = options.strings(listed), len(listed)
    struct.caption_count, struct.captions[0:len(captions)] = len(captions), options.strings(captions)[0:len(captions)]
    struct.model = model.struct[0]
    ended = [False]
    notes: Dict[str, None] = {}

    def on_progress(_user: Any, now: Any) -> Any:
        notes.update({note: None for note in (string(now.note), string(now.unused)) if note is not None})
        if progress is not None:
            progress(fields(now[0]))
        return lib.SMALTI_EXTRACT_DROP if ended[0] else lib.SMALTI_EXTRACT_CONTINUE

    def cancel() -> None:
        ended[0] = True

    result = ffi.new("struct smalti_extract_result *")
    with session._resource.call(cancel) as call:
        callback = call.callback("smalti_extract_callback *", on_progress, lib.SMALTI_EXTRACT_DROP)
        check(lib.smalti_extract, session._resource.pointer, struct, callback, ffi.NULL, result)
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return fields(result.progress)
