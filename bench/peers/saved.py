#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pipelines as the installed diffusers and transformers save them, painted by Smalti and by diffusers.

Usage: saved.py [--smalti PROGRAM] [--steps N] [--size WxH] [--form NAME] MODEL

Opens the pipeline MODEL (models/tesserae), saves it in each of the forms below, and paints one prompt from every
folder with both programs, in float32. Prints the largest difference of the final latents over the largest latent,
and how many of the pictures' samples differ and by how much; ends with 1 when latents differ by more than 5e-5.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import diffusers
import numpy
import PIL.Image
import safetensors.torch
import torch
import transformers

PROMPT = "a large red star above a small blue ring on a white background"
SEED = 3
TOLERANCE = 5e-5


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][len("Usage: "):])
    parser.add_argument("--smalti", default="smalti")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--size", default="128x128")
    parser.add_argument("--form", help="only this one")
    parser.add_argument("model")
    return parser.parse_args()


def cast(dtype):
    return lambda pipe: pipe.to(dtype)


def as_alpha(pipe):
    return diffusers.PixArtAlphaPipeline(**pipe.components)


def with_scheduler(name, **changes):
    def change(pipe):
        kind = getattr(diffusers, name)
        pipe.scheduler = kind.from_config(pipe.scheduler.config, **changes)
        return pipe
    return change


# name, what is done to the pipeline, arguments of save_pretrained()
FORMS = (
    ("f32", None, {}),
    ("f16", cast(torch.float16), {}),
    ("bf16", cast(torch.bfloat16), {}),
    ("sharded", None, {"max_shard_size": "1MB"}),
    ("variant fp16", cast(torch.float16), {"variant": "fp16"}),
    ("variant fp16, sharded", cast(torch.float16), {"variant": "fp16", "max_shard_size": "1MB"}),
    ("alpha", as_alpha, {}),
    ("DPM-Solver++, Karras", with_scheduler("DPMSolverMultistepScheduler", use_karras_sigmas=True), {}),
    ("Euler", with_scheduler("EulerDiscreteScheduler"), {}),
    ("Euler, trailing", with_scheduler("EulerDiscreteScheduler", timestep_spacing="trailing"), {}),
    ("DDIM", with_scheduler("DDIMScheduler", clip_sample=False), {}),
    ("LCM", with_scheduler("LCMScheduler"), {}),
    ("SA-Solver", with_scheduler("SASolverScheduler", algorithm_type="data_prediction"), {}),
)


def by_smalti(given, folder, work):
    subprocess.run([given.smalti, "generate", "-q", "-m", folder, "-p", PROMPT, "--seed", str(SEED), "--steps",
                    str(given.steps), "--size", given.size, "--save-latents", "-o", work / "smalti.png"], check=True)
    latents = safetensors.torch.load_file(work / "smalti.safetensors")["latents"]
    return latents, numpy.asarray(PIL.Image.open(work / "smalti.png"), dtype=int)


def by_diffusers(given, folder, variant):
    width, height = (int(side) for side in given.size.split("x"))
    pipe = diffusers.DiffusionPipeline.from_pretrained(folder, torch_dtype=torch.float32, variant=variant)
    pipe.set_progress_bar_config(disable=True)
    kept = {}

    def keep(_step, _time, latents):
        kept["latents"] = latents.clone()

    picture = pipe(PROMPT, width=width, height=height, num_inference_steps=given.steps, guidance_scale=4.5,
                   clean_caption=False, use_resolution_binning=False, callback=keep, callback_steps=1,
                   generator=torch.Generator().manual_seed(SEED)).images[0]
    return kept["latents"], numpy.asarray(picture, dtype=int)


def compare(given, form, work):
    name, change, how = form
    pipe = diffusers.DiffusionPipeline.from_pretrained(given.model)
    pipe = change(pipe) if change else pipe
    folder = work / name.replace(" ", "-")
    pipe.save_pretrained(folder, **how)
    ours, our_picture = by_smalti(given, folder, work)
    theirs, their_picture = by_diffusers(given, folder, how.get("variant"))
    worst = ((ours.reshape(theirs.shape) - theirs).abs().max() / theirs.abs().max()).item()
    steps = numpy.abs(our_picture - their_picture)
    files = ",".join(sorted(path.name for path in (folder / "tokenizer").iterdir()))
    print(f"{name:24}{worst:10.1e}{numpy.count_nonzero(steps):8} of {steps.size}, by {steps.max()}   {files}")
    return worst <= TOLERANCE


def main():
    given = arguments()
    print(f"diffusers {diffusers.__version__}, transformers {transformers.__version__}, torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as work:
        fine = [compare(given, form, pathlib.Path(work)) for form in FORMS
                if given.form in (None, form[0])]
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
