#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tour.py LIST DIRECTORY: what docs/python.md walks through, with the embedded model; LIST is a data set, such as
tests/data/extract/InternData/data_info.json. Writes into DIRECTORY."""

import sys
from pathlib import Path

import numpy as np
import smalti
from smalti_features import Features, as_float32

data_set, directory = sys.argv[1], Path(sys.argv[2])
directory.mkdir(exist_ok=True)


def write_ppm(path: Path, image: np.ndarray) -> None:
    height, width, _ = image.shape
    path.write_bytes(b"P6\n%d %d\n255\n" % (width, height) + image.tobytes())


# A pipeline: the embedded model, on all CPUs. `with` closes it.
with smalti.Session() as session, smalti.Pipeline(session=session) as pipeline:
    info = pipeline.info
    print(info["native_width"], "x", info["native_height"], "pixels, scheduler", info["scheduler"])

    # Images: one array for all, of one prompt or many.
    images = pipeline.generate(["a red star above a blue ring on a white background", "a green heart on a black background"],
                               width=96, height=64, num_inference_steps=8, seed=1)
    print(images.shape, images.dtype)
    write_ppm(directory / "star.ppm", images[0])
    write_ppm(directory / "heart.ppm", images[1])

    # The last latents instead, and the VAE: what generate() does, in two steps.
    latents = pipeline.generate("a green heart on a black background", width=96, height=64, num_inference_steps=8, seed=1,
                                output_type="latent")
    print(latents.shape, latents.dtype, np.array_equal(pipeline.decode(latents[0]), images[1]))

    # Back: the distribution of an image's latents, and a draw from it.
    encoding = pipeline.encode(images[0])
    np.save(directory / "star.npy", encoding.mean)
    again = pipeline.decode(pipeline.vae.sample(encoding, seed=3))
    print("mean difference of an image that was encoded and decoded:", np.abs(again.astype(int) - images[0]).mean())

    # Texts as the transformer reads them.
    circle, ring = pipeline.encode_prompt(["a red circle", "a red ring"])
    print(circle.ids, circle.values.shape, circle.values.dtype)

    # What the library refuses is an exception, in its words.
    try:
        pipeline.generate("a red star", num_inference_steps=0)
    except smalti.Error as error:
        print(error.code, error)

    # The features of a data set, for training; the same call goes on where another ended.
    made = smalti.extract(data_set, directory / "features", session=session, image_size=256, dtype="f32")
    print(made["done"], "of", made["items"], "items,", made["failed"], "failed")

# Reading them needs no session and not even libsmalti.
for row in Features(str(directory / "features"), shuffled=True, seed=1, complete=True):
    mean, std = np.split(as_float32(row.picture.values), 2)
    print(row.key, row.texts["prompt"].values.shape, mean.shape)
    break
