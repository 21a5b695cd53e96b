# SPDX-License-Identifier: Apache-2.0
"""python_package.py DIRECTORY: the package `smalti` as programs use it. The directory has what tests/python.sh has made."""

import gc
import os
import signal
import subprocess
import sys
import threading
import warnings
import weakref
from pathlib import Path

import numpy as np
import outputs
import smalti
from smalti.library import ffi, lib
from smalti_features import Features

folder = Path(sys.argv[1])


def check(ok, what):
    if not ok:
        sys.exit(f"FAILED: {what}")


def refused(kind, words, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as error:
        check(all(word in str(error) for word in words), f"{function.__name__} {options}: no {words} in: {error}")
        return error
    sys.exit(f"FAILED: {function.__name__} {options}: not refused")


def read_ppm(path):
    data = path.read_bytes()
    width, height = map(int, data.split(b"\n")[1].split())
    return np.frombuffer(data[-height * width * 3:], np.uint8).reshape(height, width, 3)


def read_png(path):
    width, height, pixels = outputs.pixels(path)
    return np.frombuffer(pixels, np.uint8).reshape(height, width, 3)


def layout():
    """Structs are laid out as the compiler does it, and enums and constants are its numbers."""
    structs = [name for name in ffi.list_types()[1] if ffi.typeof(f"struct {name}").fields is not None]
    lines, expected = [], []
    for name in structs:
        kind = ffi.typeof(f"struct {name}")
        lines.append(f'printf("%zu\\n", sizeof(struct {name}));')
        expected.append(ffi.sizeof(kind))
        for field, place in kind.fields:
            lines.append(f'printf("%zu\\n", offsetof(struct {name}, {field}));')
            expected.append(place.offset)
    for name in sorted(name for name in dir(lib) if isinstance(getattr(lib, name), int)):
        lines.append(f'printf("%lld\\n", (long long){name});')
        expected.append(getattr(lib, name))
    check(len(structs) > 10 and len(expected) > 150, "there is something to compare")
    headers = Path(__file__).parents[1] / "include"
    program = "".join(f"#include <smalti/{name}.h>\n" for name in ("extract", "generate", "vae"))
    program += "#include <stddef.h>\n#include <stdio.h>\nint main(void)\n{\n" + "\n".join(lines) + "\nreturn 0;\n}\n"
    subprocess.run(["cc", "-x", "c", "-I", headers, "-o", folder / "layout", "-"], input=program.encode(), check=True)
    found = subprocess.run([folder / "layout"], stdout=subprocess.PIPE, check=True).stdout.split()
    different = [line for line, one, other in zip(lines, map(int, found), expected) if one != other]
    check(len(found) == len(expected) and not different, f"other numbers than the compiler's: {different}")


def generating(pipeline):
    for name in ("star", "heart"):
        check(np.array_equal(read_ppm(folder / f"tour/{name}.ppm"), read_png(folder / f"{name}.png")), "the command's image")
    star = read_ppm(folder / "tour/star.ppm")
    small = {"width": 96, "height": 64, "num_inference_steps": 8}
    prompt = "a red star above a blue ring on a white background"
    heard = []
    images = pipeline.generate(prompt, num_images_per_prompt=2, seed=1, progress=heard.append, **small)
    check(np.array_equal(images[0], star) and not np.array_equal(images[1], star), "several images")
    check(all(0 <= share <= 1 for share in heard), f"progress: {heard}")
    images = pipeline.generate([prompt, prompt], seed=[2, 1], **small)
    check(np.array_equal(images[1], star) and not np.array_equal(images[0], star), "seeds")
    check(np.array_equal(pipeline.generate(prompt, seed=-1, **small), pipeline.generate(prompt, seed=2**64 - 1, **small)),
          "negative seeds")
    noise = np.random.default_rng(0).standard_normal((2, 4, 8, 12), np.float32)
    pair = pipeline.generate([prompt, prompt], latents=noise, **small)
    check(np.array_equal(pair[1], pipeline.generate(prompt, latents=noise[1:], **small)[0]), "first noise")
    one, eight = np.int64(1), np.int32(8)
    images = pipeline.generate(prompt, seed=one, width=np.uint16(96), height=np.int64(64), num_inference_steps=eight,
                               num_images_per_prompt=one, guidance_scale=np.float32(4.5), use_resolution_binning=np.False_)
    check(np.array_equal(images[0], star), "NumPy's numbers")
    check(np.array_equal(pipeline.generate(prompt, seed=np.int64(-1), **small),
                         pipeline.generate(prompt, seed=np.array([2**64 - 1], np.uint64), **small)), "NumPy's seeds")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pipeline.generate("a red xylophone", width=32, height=32, num_inference_steps=1)
    check(len(caught) == 1 and "xylophone" in str(caught[0].message) and caught[0].filename == __file__, "unknown words")
    check("euler" in smalti.schedulers(), "schedulers")
    for count in (1, 3):
        steps = []
        pipeline.generate(prompt, num_images_per_prompt=count, on_step=lambda *step: steps.append(step), **small)
        check(steps == [(step, 8) for step in range(1, 9)], f"steps: {steps}")
    skipping = pipeline.generate(prompt, seed=1, step_cache="first-block:9", **small)[0]
    check(not np.array_equal(skipping, star), "a step cache")
    mask = np.zeros((64, 96), bool)
    mask[:, 48:] = True
    painted = pipeline.generate(prompt, seed=3, image=star[::-1], mask=mask, keep_original=True, posterior="mean", **small)[0]
    check(np.array_equal(painted[:, :48], star[::-1, :48]) and not np.array_equal(painted, star[::-1]), "repainted")
    changed = pipeline.generate(prompt, seed=1, image=read_png(folder / "star.png"), strength=0.5, scheduler="unipc", **small)
    check(np.array_equal(changed[0], read_png(folder / "changed.png")), "the command's changed image")


def as_diffusers(pipeline):
    """Code that was written for diffusers."""
    options = {"width": 96, "height": 64, "num_inference_steps": 8, "seed": 1}
    prompt = "a red star above a blue ring on a white background"
    star = read_ppm(folder / "tour/star.ppm")
    check(np.array_equal(pipeline(prompt, output_type="np", **options).images[0], star), "an array")
    check(pipeline(prompt, output_type="latent", **options).images.shape == (1, 4, 8, 12), "latents")
    try:
        import PIL
    except ImportError:
        error = refused(ImportError, ["pip install pillow", 'output_type="np"'], pipeline, prompt, **options)
        check(error.__cause__ is None, "one message")
    else:
        images = pipeline(prompt, **options).images
        check(PIL is not None and images[0].size == (96, 64) and np.array_equal(np.asarray(images[0]), star), "Pillow's image")
    model = os.environ["SMALTI_MODEL_DIR"]
    pretrained = smalti.Pipeline.from_pretrained(model, torch_dtype="torch.float32", session=pipeline.session)
    check(np.array_equal(pretrained(prompt, output_type="np", **options).images[0], star), "from_pretrained")
    pretrained.close()
    refused(ValueError, ["float32, float16, bfloat16", "torch.int8"], smalti.Pipeline.from_pretrained, model,
            torch_dtype="torch.int8")


def refusing(pipeline):
    generate = pipeline.generate
    error = refused(ValueError, ["steps", "0"], generate, "a", num_inference_steps=0)
    check(isinstance(error, smalti.Error) and error.code == "EINVAL", "the error's class and code")
    refused(smalti.Error, ["width", "8"], generate, "a", width=8, height=64)
    refused(smalti.Error, ["euler"], generate, "a", scheduler="nonsense")
    refused(ValueError, ["[1, 4, 8, 8]"], generate, "a", width=64, height=64, latents=np.zeros((1, 4, 1, 1)))
    refused(ValueError, ["raw, basic, full, strip"], generate, "a", cleaning="nonsense")
    refused(ValueError, ["NUL"], generate, "a\0b")
    refused(ValueError, ["prompt"], generate, [])
    refused(ValueError, ["seeds"], generate, ["a", "b"], seed=[1])
    refused(OverflowError, [], generate, "a", seed=2**64)
    refused(OverflowError, [], generate, "a", seed=-(2**63) - 2**64)
    refused(TypeError, [], generate, "a", height=64.5)
    refused(ValueError, ["latent"], generate, "a", output_type="pil")
    refused(ValueError, ["latents"], generate, "a", latents=np.zeros((2, 4, 8, 8)))
    refused(ValueError, ["[1, 4, 4, 8]", "[1, 4, 8, 4]"], generate, "a", width=64, height=32, latents=np.zeros((1, 4, 8, 4)))
    refused(ValueError, ["[1, 4, 4, 8]", "[1, 2, 8, 8]"], generate, "a", width=64, height=32, latents=np.zeros((1, 2, 8, 8)))
    for seed in 1.5, np.float64(3), "3", [1.5]:
        refused(TypeError, ["seed", "whole number", repr(seed)], generate, "a", seed=seed)
    refused(ValueError, ["image", "uint8", "float64"], generate, "a", image=np.zeros((64, 64, 3)))
    refused(ValueError, ["mask", "[64, 64, 3]"], generate, "a", image=np.zeros((64, 64, 3), np.uint8),
            mask=np.zeros((64, 64, 3), np.uint8))
    refused(smalti.Error, ["mask", "image"], generate, "a", mask=np.zeros((64, 64), bool))
    refused(smalti.Error, ["height", "multiple of 8", "63"], pipeline.encode, np.zeros((63, 64, 3), np.uint8))
    refused(smalti.Error, ["width"], pipeline.encode, np.zeros((64, 0, 3), np.uint8))
    refused(ValueError, ["uint8"], pipeline.encode, np.zeros((64, 64, 3)))
    refused(ValueError, ["uint8"], pipeline.encode, np.zeros((64, 64, 4), np.uint8))
    refused(smalti.Error, ["finite"], pipeline.decode, np.full((4, 8, 8), np.nan))
    refused(ValueError, ["latents"], pipeline.decode, np.zeros((3, 8, 8)))
    refused(ValueError, ["float64"], pipeline.decode, np.zeros((4, 8, 8)), dtype=np.float64)
    refused(smalti.Error, ["nowhere"], smalti.Pipeline, folder / "nowhere", session=pipeline.session)
    refused(smalti.Error, ["use that one, or close it"], smalti.Session)  # there is one
    refused(OSError, ["nowhere"], smalti.Pipeline, folder / "nowhere")
    refused(smalti.Error, ["nowhere"], smalti.extract, folder / "nowhere", folder / "made", session=pipeline.session)
    refused(TypeError, [], smalti.extract, 5, folder / "made", session=pipeline.session)


def decoding(pipeline):
    mean = np.load(folder / "star.npy")
    expected = read_ppm(folder / "decoded.ppm")
    check(np.array_equal(pipeline.decode(mean, raw=True), expected), "the command's image")
    check(np.array_equal(pipeline.decode(np.asfortranarray(mean), raw=True), expected), "strides")
    exact = pipeline.decode(mean, raw=True, dtype=np.float32)
    levels = np.rint(np.clip(exact / 2 + np.float32(0.5), 0, 1) * 255)
    check(np.abs(levels - expected).max() <= 1 and exact.dtype == np.float32, "float32")
    deep = pipeline.decode(mean, raw=True, dtype=np.uint16)
    check(np.abs(deep / 257 - expected).max() <= 0.6, "uint16")
    swapped = pipeline.decode(mean, raw=True, dtype=">u2" if sys.byteorder == "little" else "<u2")
    check(np.array_equal(swapped, deep) and not swapped.dtype.isnative, "the other byte order")
    encoding = pipeline.encode(read_ppm(folder / "tour/star.ppm")[::-1, ::-1])
    check(encoding.mean.shape == encoding.std.shape == (4, 8, 12) and (encoding.std > 0).all(), "an image of other strides")
    draws = [pipeline.vae.sample(encoding, seed) for seed in (0, 0, 1)]
    check(np.array_equal(draws[0], draws[1]) and not np.array_equal(draws[0], draws[2]), "draws")


def owner(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return array


def features(pipeline):
    """Nothing is copied on the way from the library, or from a file, to an array."""
    theirs, ours = ([row for row in Features(str(folder / name))] for name in ("features", "tour/features"))
    check(len(theirs) == len(ours) == 14, "rows")
    for one, other in zip(theirs, ours):
        check(one.key == other.key and np.array_equal(one.picture.values, other.picture.values), "the command's features")
        check(np.array_equal(one.texts["prompt"].values, other.texts["prompt"].values), "the command's features")
    check(not ours[0].texts["prompt"].values.flags.owndata, "a row's values are the file's")
    twice = Features(str(folder / "tour/features"))
    check(np.shares_memory(twice[3].texts["prompt"].values, twice[3].texts["prompt"].values), "a row that is read twice")

    prompt = "a brown triangle above a green circle on a white background"
    states = pipeline.encode_prompt([prompt, "a red star"], cleaning="strip")
    check(np.array_equal(states[0].values, ours[0].texts["prompt"].values), "states are those of the features")
    check(np.array_equal(states[0].ids, ours[0].texts["prompt"].ids), "ids are those of the features")
    values, before = states[1].values, states[1].values.copy()
    check(not values.flags.owndata and isinstance(owner(values), ffi.buffer), "states are the library's memory")
    whole = values[1:, ::2]
    check(np.shares_memory(whole, values), "a part shares it")
    del states, values
    gc.collect()
    check(len(pipeline.encode_prompt(["a blue ring"] * 5)) == 5, "other states")
    check(np.array_equal(whole, before[1:, ::2]), "the last array keeps its memory")
    refused(smalti.Error, ["number of texts"], pipeline.encode_prompt, [])

    # Images go with their last name, and wait for no collection of cycles.
    gc.collect()
    gc.disable()
    for make in (lambda: pipeline.generate(prompt, width=32, height=32, num_inference_steps=1, progress=abs),
                 lambda: pipeline.decode(np.zeros((4, 8, 8))), lambda: pipeline.encode(np.zeros((64, 64, 3), np.uint8)).mean):
        check(weakref.ref(make())() is None, "an image goes")
    gc.enable()


def interrupting(pipeline):
    """Ctrl-C and exceptions end a call; what comes next is as before."""
    prompt, large = "a red star", {"width": 512, "height": 512}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background has it ignored

    class Enough(Exception):
        pass

    def enough(*_arguments):
        raise Enough("of it")

    def control_c(_share):
        os.kill(os.getpid(), signal.SIGINT)

    refused(Enough, ["of it"], pipeline.generate, prompt, on_step=enough, **large)
    for failure, words, progress in ((Enough, ["of it"], enough), (KeyboardInterrupt, [], control_c)):
        refused(failure, words, pipeline.generate, prompt, progress=progress, **large)
        refused(failure, words, pipeline.decode, np.zeros((4, 64, 64)), progress=progress)
        refused(failure, words, pipeline.encode, np.zeros((512, 512, 3), np.uint8), progress=progress)
    # Where texts' states are freed no code of Python runs, in which Ctrl-C would be lost.
    states, seen = pipeline.encode_prompt(prompt), []
    sys.setprofile(lambda frame, event, _: seen.append(frame.f_code.co_filename) if event == "call" else None)
    del states
    sys.setprofile(None)
    check(not any("smalti" in name for name in seen), f"code that frees: {seen}")
    decoding(pipeline)
    data = folder / "tour/interrupted"
    refused(Enough, ["of it"], smalti.extract, folder / "prompts.jsonl", data, session=pipeline.session, images=False,
            shard_items=1, progress=enough)
    made = smalti.extract(folder / "prompts.jsonl", data, session=pipeline.session, images=False, shard_items=1)
    check(made["done"] == made["items"] == 3, f"an extraction goes on: {made}")
    check([row.key for row in Features(str(data))] == ["0", "1", "2"], "its rows")
    made = smalti.extract(folder / "prompts.jsonl", folder / "tour/decided", session=pipeline.session, images=False,
                          shard_items="auto")
    check(made["shard_items"] > 1 and made["pack_tokens"] == 2048 and made["pack_images"] == 0 and made["memory"] > 0 and
          made["memory_of"] == "main memory", f"what is computed together: {made}")


def adapting(pipeline):
    """The command's image, of a model that adapters have changed and whose text encoder is of integers."""
    small = {"height": 64, "width": 64, "num_inference_steps": 4}
    adapters = {folder / "adapters/peft": 0.7, folder / "adapters/flat/lora.safetensors": -0.5}
    with smalti.Pipeline(session=pipeline.session, lora=adapters, text_encoder_precision="int8") as changed:
        image = changed.generate("a red star", **small)[0]
    check(np.array_equal(image, read_png(folder / "adapted.png")), "the command's image with adapters")
    check(not np.array_equal(image, pipeline.generate("a red star", **small)[0]), "adapters change nothing")
    for precision in "w8a8", "w8a8-bf16":
        with smalti.Pipeline(session=pipeline.session, lora=folder / "adapters/peft", precision=precision) as integers:
            check(integers.decode(integers.generate("a", output_type="latent", **small)[0]).shape == (64, 64, 3), precision)
    refused(smalti.Error, ["nowhere"], smalti.Pipeline, session=pipeline.session, lora=folder / "nowhere")
    refused(ValueError, ["stored, int8, w8a8"], smalti.Pipeline, text_encoder_precision="f8")


def interrupted_at_once():
    """Ctrl-C where a call begins or ends: nothing is left that keeps the pipeline from being closed."""
    class Interrupting:
        def __init__(self, condition, left):
            self.condition, self.left = condition, left

        def _pass(self):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

        def __enter__(self):
            self._pass()
            self.condition.acquire()

        def __exit__(self, *_error):
            self.condition.release()
            self._pass()

        def notify_all(self):
            self.condition.notify_all()

    for left in 1, 2, 3, 4:
        pipeline = smalti.Pipeline()
        condition = pipeline._resource._changed
        pipeline._resource._changed = Interrupting(condition, left)
        refused(KeyboardInterrupt, [], pipeline.encode_prompt, "a red star")
        pipeline._resource._changed = condition
        pipeline.close()


def closing(session):
    pipeline = smalti.Pipeline(session=session)
    refused(RuntimeError, ["callback"], pipeline.generate, "a", width=512, height=512,
            progress=lambda _share: pipeline.close())
    # A thread that paints while another closes has its image cancelled.
    begun, ended = threading.Event(), []

    def paint():
        try:
            pipeline.generate("a", width=512, height=512, progress=lambda _share: begun.set())
        except smalti.Error as error:
            ended.append(error.code)

    other = smalti.Pipeline(session=session)
    pipeline = other
    thread = threading.Thread(target=paint)
    thread.start()
    begun.wait(60)
    pipeline.close()
    thread.join()
    check(ended == ["ECANCELLED"], f"the other thread: {ended}")
    pipeline.close()
    refused(ValueError, ["pipeline is closed"], pipeline.generate, "a")
    # A session closes what is open on it.
    last = smalti.Pipeline(session=session)
    vae = last.vae
    session.close()
    session.close()
    last.close()
    for function in (last.generate, last.encode_prompt):
        refused(ValueError, ["is closed"], function, "a")
    refused(ValueError, ["VAE is closed"], vae.decode, np.zeros((4, 8, 8)))
    refused(ValueError, ["session is closed"], smalti.Pipeline, session=session)
    # A notebook's cell that is run again: pipelines that are given no session share one.
    pipeline = smalti.Pipeline()
    pipeline = smalti.Pipeline()
    other = smalti.Pipeline(precision="f32")
    check(other.session is pipeline.session, "one session")
    refused(smalti.Error, ["nowhere"], smalti.Pipeline, folder / "nowhere")
    pipeline.close()
    other.generate("a", width=32, height=32, num_inference_steps=1)
    other.close()
    with smalti.Session() as session:
        with smalti.Pipeline() as one, smalti.Pipeline() as other:
            check(one.session is other.session is session, "the session that is open")
        check(session._resource.is_open, "which pipelines leave open")
    # A child process leaves the parent's alone.
    with smalti.Pipeline() as parents:
        child = os.fork()
        if child == 0:
            parents.close()
            os._exit(0)
        check(os.waitpid(child, 0)[1] == 0, "a child process")
        parents.generate("a", width=32, height=32, num_inference_steps=1)


(folder / "prompts.jsonl").write_text("".join(f'{{"id": "{i}", "prompt": "a red star"}}\n' for i in range(3)))
layout()
with smalti.Session() as session, smalti.Pipeline(session=session) as pipeline:
    for part in (generating, as_diffusers, adapting, refusing, decoding, features, interrupting):
        part(pipeline)
    closing(session)
interrupted_at_once()
