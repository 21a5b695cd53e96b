# SPDX-License-Identifier: Apache-2.0
"""Errors of each stage of the embedded model, and what its pictures show, by precision. Prints a table.

Usage: weights.py SMALTI PROMPTS

Errors are the largest of a tensor over its largest value in f32. A step's output is found from its latents: DDIM with one
step from the timestep T computes (x - deviation * output) / scale.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import smalti

JUDGE = Path(__file__).parents[1] / "tesserae/judge"
SEED = 2  # of the prompts
TIMESTEPS = 100, 500, 900
STEPPED = 64  # prompts of which steps are compared
ROWS = [
    {},
    {"precision": "bf16"},
    {"text_encoder_precision": "int8"},
    {"text_encoder_precision": "w8a8"},
    {"precision": "w8a8"},
    {"precision": "w8a8", "text_encoder_precision": "int8"},
    {"precision": "w8a8-bf16"},
    {"type": "int8"},
    {"type": "fp8"},
]

command, count = sys.argv[1], int(sys.argv[2])
scratch = tempfile.TemporaryDirectory()
work = Path(scratch.name)


def run(*arguments):
    return subprocess.run([str(one) for one in arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def of_command(row):
    return [f"--{key.replace('_', '-')} {value}" for key, value in row.items()]


def label(row):
    if not row:
        return "f32"
    return "`" + ("quantize " if "type" in row else "") + " ".join(of_command(row)) + "`"


def quantized(row):
    """The pipeline of quantize; None: the embedded one."""
    return work / row["type"] if "type" in row else None


def opened(row, **more):
    """The pipeline of a row."""
    options = {key: value for key, value in row.items() if key != "type"}
    return smalti.Pipeline(more.pop("directory", None), session=session, **options, **more)


def error(found, expected):
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def texts(row):
    with opened(row, directory=quantized(row)) as pipeline:
        return [np.array(states.values) for states in pipeline.encode_prompt(prompts)]


def outputs(row, latents):
    """The transformer's outputs in a step at each timestep, with the text of f32 if the row's precision has it."""
    found = []
    for timestep in TIMESTEPS:
        scheduler = work / f"ddim-{timestep}"
        scheduler.mkdir(exist_ok=True)
        (scheduler / "scheduler_config.json").write_text(json.dumps({
            "_class_name": "DDIMScheduler", "clip_sample": False, "timestep_spacing": "leading", "steps_offset": timestep}))
        left = np.prod(1 - np.linspace(0.0001, 0.02, 1000)[:timestep + 1])
        scale, deviation = left**0.5, (1 - left)**0.5
        noise = np.random.default_rng(timestep).standard_normal(latents.shape, np.float32)
        x = (scale * latents + deviation * noise).astype(np.float32)
        part = quantized(row) and quantized(row) / "transformer"
        alone = {key: value for key, value in row.items() if key == "precision"}
        with opened(alone, transformer=part, scheduler=scheduler) as pipeline:
            made = pipeline.generate(prompts[:len(x)], num_inference_steps=1, guidance_scale=1, latents=x, output_type="latent")
        found += list((x.astype(float) - scale * made) / deviation)
    return found


def images(row):
    """Latents of all prompts, and what the judge says of their pictures."""
    directory = work / label(row).strip("`").replace(" ", "")
    model = ["-m", quantized(row)] if "type" in row else [word for option in of_command(row) for word in option.split()]
    run(command, "generate", "-q", *model, "-P", work / "prompts.jsonl", "--save-latents", "-o", f"{directory}/")
    verdict = run(sys.executable, JUDGE, "pictures", work / "prompts.txt", *(directory / f"{i}.png" for i in range(count)))
    return [latents_of(directory / f"{i}.safetensors") for i in range(count)], json.loads(verdict)


def latents_of(path):
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    (entry,) = (value for key, value in json.loads(data[8:begin]).items() if key != "__metadata__")
    return np.frombuffer(data[begin:], np.float32).reshape(entry["shape"])


def percent(value):
    return f"{100 * value:.2g} %" if value else "–"


(work / "prompts.txt").write_text(run(sys.executable, JUDGE, "prompts", count, SEED))
prompts = (work / "prompts.txt").read_text().splitlines()
(work / "prompts.jsonl").write_text("".join(
    json.dumps({"id": str(i), "prompt": prompt, "seed": i}) + "\n" for i, prompt in enumerate(prompts)))
session = smalti.Session()
for kind in {row["type"] for row in ROWS if "type" in row}:
    run(command, "quantize", "-q", "-t", kind, Path(__file__).parents[2] / "models/tesserae", work / kind)

print("| | text | a step | latents: median | largest | background | colours | shapes | relation |")
print("|---|---|---|---|---|---|---|---|---|")
for row in ROWS:
    print(label(row), file=sys.stderr)
    latents, verdict = images(row)
    states = texts(row)
    if not row:
        f32 = latents, states, np.stack(latents[:STEPPED]).reshape(-1, *latents[0].shape[-3:])
    predicted = outputs(row, f32[2])
    if not row:
        f32 = *f32, predicted
    of_latents, of_texts, of_steps = (list(map(error, found, expected)) for found, expected in
                                      zip((latents, states, predicted), (f32[0], f32[1], f32[3])))
    shown = (f"{verdict[what]:.1f} %" for what in ("background", "colours", "shapes", "relation"))
    print(f"| {label(row)} |", " | ".join(map(percent, (max(of_texts), max(of_steps), np.median(of_latents), max(of_latents)))),
          "|", " | ".join(shown), "|", flush=True)
