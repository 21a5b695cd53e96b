# SPDX-License-Identifier: Apache-2.0
"""convert_pth.py DIRECTORY: smalti.convert on checkpoints of PyTorch, on others made here in both forms, and on damaged ones.
Leaves the converted ones in DIRECTORY. Nothing may be imported, opened as a library or executed by what a file says."""

import collections
import hashlib
import io
import json
import os
import pickle
import random
import resource
import shutil
import struct
import subprocess
import sys
import types
import zipfile
from pathlib import Path
from unittest import mock

import numpy as np
from smalti.convert import Given, Refused, convert
from smalti.convert.pickles import load
from smalti.convert.pixart import _first_row
from smalti.convert.torch_file import TorchFile

folder = Path(sys.argv[1])
golden = Path(os.environ["SMALTI_TESTDATA"]) / "golden/pth"
TINY = Given(interpolation_scale=1, heads=3)
made = 0


def check(ok, what):
    if not ok:
        sys.exit(f"FAILED: {what}")


def output():
    global made
    made += 1
    return folder / f"made-{made}"


def refused(words, checkpoint, average=False, given=TINY):
    target = output()
    try:
        convert(str(checkpoint), str(target), average=average, given=given)
    except Refused as error:
        check(words in str(error) and str(checkpoint) in str(error), f"no {words!r} in: {error}")
        check(not target.exists() and not list(folder.glob("*.part")), f"{words}: something is left")
        return
    sys.exit(f"FAILED: {checkpoint}: not refused: {words}")


def digests(tensors):
    return {name: f"{kind} {list(shape)} {hashlib.sha256(data).hexdigest()[:16]}" for name, kind, shape, data in tensors}


def safetensors(path):
    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    check(header.pop("__metadata__") == {"format": "pt"}, "metadata")
    end = 0
    for name, entry in header.items():
        begin, end = entry["data_offsets"][0], entry["data_offsets"][1]
        yield name, entry["dtype"], entry["shape"], data[start + begin:start + end]
    check(start + end == len(data), f"{path}: its size")


def golden_files():
    expected = json.loads((golden / "converted.json").read_text())
    for name, file, average in (("sigma", "epoch_3_step_1200", False), ("sigma-ema", "epoch_3_step_1200", True),
                                ("alpha-f16", "alpha-f16", False), ("old", "bare-legacy", False)):
        converted = convert(str(golden / f"{file}.pth"), str(folder / name), average=average, given=TINY)
        found = digests(safetensors(folder / name / "diffusion_pytorch_model.safetensors"))
        check(found == expected["sigma" if name == "old" else name] and converted.tensors == len(found), f"{name}: its tensors")
        check(converted.config == json.loads((folder / name / "config.json").read_text()), f"{name}: its config")
        check(converted.config["use_additional_conditions"] == (name == "alpha-f16"), f"{name}: sizes")
    with TorchFile(golden / "views.pth") as file:
        views = {name: (tensor, file.array(tensor)) for name, tensor in file.value["state_dict"].items()}
    found = digests((name, tensor.storage.dtype.name, tensor.shape, np.ascontiguousarray(array).tobytes())
                    for name, (tensor, array) in views.items())
    check(found == expected["views"], f"views: {found}")
    refused("posix.getpid", golden / "hostile.pth")
    refused("state_dict_ema", golden / "alpha-f16.pth", average=True)
    refused("--heads", golden / "alpha-f16.pth", given=Given(interpolation_scale=1))
    refused("--interpolation-scale", golden / "alpha-f16.pth", given=Given(heads=3))
    refused("is that of images of 64 pixels a side, not of 512", golden / "alpha-f16.pth", given=TINY._replace(image_size=512))


# What torch.save writes, without PyTorch: stand-ins under the names that its pickles have.

class Storage:
    def __init__(self, kind, array):
        self.kind, self.array = kind, array


class Tensor:
    """Of a part of a storage; `said` stands in its place in the pickle."""

    def __init__(self, array, kind="FloatStorage", **said):
        array = np.ascontiguousarray(array)
        strides = tuple(step // array.itemsize for step in array.strides)
        self.said = {"storage": Storage(kind, array.reshape(-1)), "offset": 0, "shape": array.shape, "strides": strides, **said}

    def __reduce__(self):
        said = self.said
        return (sys.modules["torch._utils"]._rebuild_tensor_v2,
                (said["storage"], said["offset"], said["shape"], said["strides"], False, collections.OrderedDict()))


class Evil:
    def __reduce__(self):
        return os.system, ("touch executed",)


def pickled(value, storages):
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for kind in ("FloatStorage", "HalfStorage", "BFloat16Storage", "DoubleStorage", "ComplexFloatStorage"):
        setattr(torch, kind, type(kind, (), {"__module__": "torch"}))
    exec("def _rebuild_tensor_v2(): pass", utils.__dict__)

    class Pickler(pickle.Pickler):
        def persistent_id(self, thing):
            if not isinstance(thing, Storage):
                return None
            key = storages.setdefault(id(thing), (str(len(storages)), thing))[0]
            return "storage", getattr(torch, thing.kind), key, "cpu", len(thing.array)

    file = io.BytesIO()
    with mock.patch.dict(sys.modules, {"torch": torch, "torch._utils": utils}):
        Pickler(file, 2).dump(value)
    return file.getvalue()


def save(value, byteorder="little", compression=zipfile.ZIP_STORED):
    path = output().with_suffix(".pth")
    storages = {}
    data = pickled(value, storages)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("stem/data.pkl", data)
        archive.writestr("stem/byteorder", byteorder)
        for key, storage in storages.values():
            archive.writestr(f"stem/data/{key}", storage.array.tobytes())
    return path


def save_old(value, machine=None, count=None):
    path = output().with_suffix(".pth")
    storages = {}
    machine = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}} if machine is None else machine
    data = [pickle.dumps(0x1950a86a20f9469cfc6c, 2), pickle.dumps(1001, 2), pickle.dumps(machine, 2), pickled(value, storages)]
    data.append(pickle.dumps([key for key, _ in storages.values()], 2))
    for _, storage in storages.values():
        data += [struct.pack("<Q", len(storage.array) if count is None else count), storage.array.tobytes()]
    path.write_bytes(b"".join(data))
    return path


def tiny(width=12, scale=2.0, base=4, captions=5):
    """The weights of a model of one block, by PixArt's names."""
    noise = np.random.default_rng(7)

    def linear(name, rows, *columns):
        return {f"{name}.weight": (rows, *columns), f"{name}.bias": (rows,)}

    shapes = {
        **linear("x_embedder.proj", width, 4, 2, 2), **linear("t_embedder.mlp.0", width, 256),
        **linear("t_embedder.mlp.2", width, width), **linear("t_block.1", 6 * width, width),
        **linear("y_embedder.y_proj.fc1", width, captions), **linear("y_embedder.y_proj.fc2", width, width),
        **linear("final_layer.linear", 32, width), "final_layer.scale_shift_table": (2, width),
        "blocks.0.scale_shift_table": (6, width), **linear("blocks.0.attn.qkv", 3 * width, width),
        **linear("blocks.0.attn.proj", width, width), **linear("blocks.0.cross_attn.q_linear", width, width),
        **linear("blocks.0.cross_attn.kv_linear", 2 * width, width), **linear("blocks.0.cross_attn.proj", width, width),
        **linear("blocks.0.mlp.fc1", 4 * width, width), **linear("blocks.0.mlp.fc2", width, 4 * width)}
    state = collections.OrderedDict((name, Tensor(noise.standard_normal(shape, np.float32))) for name, shape in shapes.items())
    positions = [np.hstack([_first_row(base, width, scale)[:, :width // 2], np.tile(row[:width // 2], (base, 1))])
                 for row in _first_row(base, width, scale)]
    state["pos_embed"] = Tensor(np.concatenate(positions)[None].astype(np.float32))
    state["y_embedder.y_embedding"] = Tensor(np.zeros((300, captions), np.float32))
    state._metadata = {"": {"version": 1}}
    return state


def without(state, *names):
    return collections.OrderedDict((name, value) for name, value in state.items() if name not in names)


def with_(state, **values):
    return collections.OrderedDict([*state.items(), *values.items()])


def options():
    """What the file tells, and what has to be given."""
    heads = Given(heads=3)
    for scale in (0.5, 1.0, 2.0, 4.0):
        config = convert(str(save({"state_dict": tiny(scale=scale)})), str(output()), given=heads).config
        check((config["sample_size"], config["interpolation_scale"]) == (8, scale), f"{scale}: {config}")
    half = tiny()
    half["pos_embed"] = Tensor(half["pos_embed"].said["storage"].array.reshape(1, 16, 12).astype(np.float16), "HalfStorage")
    check(convert(str(save(half)), str(output()), given=heads).config["interpolation_scale"] == 2, "positions in f16")
    bare = without(tiny(), "pos_embed")
    alpha = with_(without(bare, "y_embedder.y_embedding"), **{"y_embedder.y_embedding": Tensor(np.zeros((120, 5), np.float32))})
    for state, size, scale in ((bare, 256, 0.5), (bare, 512, 1), (bare, 1024, 2), (bare, 2048, 4), (alpha, 256, 1)):
        config = convert(str(save(state)), str(output()), given=heads._replace(image_size=size)).config
        check((config["sample_size"], config["interpolation_scale"]) == (size // 8, scale), f"{size}: {config}")
    refused("--image-size", save(bare), given=heads)
    refused("--interpolation-scale", save(bare), given=heads._replace(image_size=768))
    refused("multiple of 16", save(bare), given=heads._replace(image_size=520))
    refused("multiple of 16", save(bare), given=heads._replace(image_size=0))
    refused("0.001", save(tiny()), given=Given(None, float("nan"), 3))
    refused("divides the width 12, found 5", save(tiny()), given=Given(heads=5))
    refused("divides the width 12, found -3", save(tiny()), given=Given(heads=-3))
    refused("no multiple of 72", save(tiny()), given=Given())
    check(convert(str(save(tiny(width=144))), str(output())).config["num_attention_heads"] == 2, "heads of 72")
    prefixed = collections.OrderedDict((f"base_model.module.{name}", value) for name, value in tiny().items())
    check(convert(str(save(prefixed)), str(output()), given=heads).tensors == 36, "prefixes")
    refused("two tensors", save(with_(tiny(), **{"model.t_block.1.bias": tiny()["t_block.1.bias"]})), given=heads)
    refused("give --ema", save({"state_dict_ema": tiny()}), given=heads)
    (folder / "full").mkdir()
    (folder / "full/file").write_text("")
    for target, words in (("full", "is no empty directory"), ("full/file", "is no empty directory")):
        try:
            convert(str(save(tiny())), str(folder / target), given=heads)
            sys.exit(f"FAILED: {target}: overwritten")
        except Refused as error:
            check(words in str(error), error)


def other_models():
    def state(name, *shape, kind="FloatStorage", drop=None, dtype=np.float32):
        return save(with_(without(tiny(), drop), **{name: Tensor(np.zeros(shape, dtype), kind)}))

    refused("blocks.0.attn.sr.weight, which belongs to KV token compression", state("blocks.0.attn.sr.weight", 12, 1, 2, 2))
    refused("KV token compression", state("blocks.0.attn.norm.weight", 12))
    refused("norms of queries and keys", state("blocks.0.attn.q_norm.weight", 12))
    refused("a ControlNet", state("controlnet.0.weight", 12))
    refused("blocks.0.attn.lora", state("blocks.0.attn.lora", 12))
    refused("has no blocks.1.scale_shift_table, which a model of 3 blocks has", state("blocks.2.attn.proj.bias", 12))
    refused("has no blocks.0.attn.proj.bias", save(without(tiny(), "blocks.0.attn.proj.bias")))
    refused("expected the shape [12], found [13]", state("blocks.0.attn.proj.bias", 13, drop="blocks.0.attn.proj.bias"))
    refused("found F64", state("t_block.1.bias", 72, drop="t_block.1.bias", kind="DoubleStorage", dtype=np.float64))
    refused("pos_embed: expected the shape", state("pos_embed", 1, 15, 12, drop="pos_embed"))
    refused("has no x_embedder.proj.weight", save({}))
    refused("found 'w', a list", save({"w": []}))
    refused("expected a dictionary", save([1]))


def damaged():
    """What no file of PyTorch has."""
    bias = np.zeros(12, np.float32)

    def said(**values):
        return save(with_(without(tiny(), "blocks.0.attn.proj.bias"), **{"blocks.0.attn.proj.bias": Tensor(bias, **values)}))

    refused("ends at element 12 of storage", said(offset=1))
    refused("ends at element 22 of storage", said(strides=(2,)))
    refused("expected a tensor's storage and offset", said(offset=-1))
    refused("no negative numbers", said(strides=(-1,)))
    refused("no negative numbers", said(shape=(True,)))
    refused("8 dimensions", said(shape=(1,) * 9, strides=(0,) * 9))
    refused("repeats the elements", said(storage=Storage("FloatStorage", bias[:1]), strides=(0,)))
    refused("torch.ComplexFloatStorage", said(storage=Storage("ComplexFloatStorage", bias)))
    refused(f"{os.system.__module__}.system", save({"state_dict": tiny(), "more": Evil()}))
    refused("a dictionary's key", save({(1, 2): tiny()}))
    refused("little-endian", save(tiny(), byteorder="big"))
    refused("is compressed", save(tiny(), compression=zipfile.ZIP_DEFLATED))
    refused("little-endian", save_old(tiny(), machine={"little_endian": False}))
    refused("has not the", save_old(tiny(), count=2**62))
    for data in (b"", b"PK\3\4", b"PK\5\6" + bytes(18), b'\2\0\0\0\0\0\0\0{}'):
        path = output()
        path.write_bytes(data)
        refused("", path)
    with mock.patch.object(zipfile, "ZIP64_LIMIT", 0), mock.patch.object(zipfile, "ZIP_FILECOUNT_LIMIT", 0):
        large = save(tiny())
    check(b"PK\6\6" in large.read_bytes(), "ZIP64")
    forms = set()
    for path in (large, save(tiny()), save_old(tiny())):
        target = output()
        convert(str(path), str(target), given=Given(heads=3))
        forms.add((target / "diffusion_pytorch_model.safetensors").read_bytes())
    check(len(forms) == 1, "the same weights in three forms")


def mutated(data, draws):
    """Some bytes changed, most of them near where pickles and archives have their structure; or the end cut off."""
    data = bytearray(data)
    if draws.random() < 0.1:
        return bytes(data[:draws.randrange(len(data))])
    pickle_at = max(data.find(b"x_embedder"), 0)
    for _ in range(draws.choice((1, 1, 2, 8))):
        start, length = draws.choice(((0, 300), (max(pickle_at - 200, 0), 6000), (max(len(data) - 4000, 0), 4000),
                                      (0, len(data))))
        value = draws.choice((draws.randrange(256), 0, 255, *b"(]}tuRQcjr."))
        data[min(start + draws.randrange(length), len(data) - 1)] = value
    return bytes(data)


def fuzz(originals, rounds):
    draws = random.Random(20)
    outcomes = collections.Counter()
    path, target = folder / "mutated.pth", folder / "mutated"
    for number in range(rounds):
        path.write_bytes(mutated(originals[number % 2], draws))
        try:
            convert(str(path), str(target), given=Given(heads=3))
            outcomes["converted"] += 1
        except Refused:
            outcomes["refused"] += 1
        shutil.rmtree(target, ignore_errors=True)
    operations = b"(]})tsueaqhrjRQbX.NK\x80\x85\x86\x87\x88\x89\x8aJMGc\0\1\2\3"
    for _ in range(20 * rounds):
        try:
            load(io.BytesIO(b"\x80\2" + bytes(draws.choices(operations, k=draws.randrange(60))) + b"."))
        except Refused:
            pass
    check(outcomes["converted"] > rounds // 20 and outcomes["refused"] > rounds // 4, f"what became of them: {outcomes}")


def command():
    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "smalti.convert", *map(str, arguments)], capture_output=True, text=True,
                              check=False, env={**os.environ, "SMALTI_LIBRARY": "/nowhere"})

    done = run(save({"state_dict": tiny(), "state_dict_ema": tiny()}), "-o", folder / "by-command", "--heads", 3)
    check(done.returncode == 0 and "of state_dict (the file has state_dict_ema, too)" in done.stdout, done)
    check("--transformer " + str(folder / "by-command") in done.stdout, done)
    done = run(golden / "hostile.pth", "-o", folder / "hostile")
    check(done.returncode == 1 and done.stderr.count("\n") == 1 and "posix.getpid" in done.stderr, done)
    done = run(folder / "nowhere.pth", "-o", folder / "hostile")
    check(done.returncode == 1 and done.stderr.count("\n") == 1 and "nowhere.pth" in done.stderr, done)


def watch(event, arguments):
    """Ends the test when a file has something imported or executed."""
    if event in ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "pickle.find_class", "ctypes.dlopen", "exec"):
        sys.stderr.write(f"FAILED: {event} {arguments}\n")
        os._exit(1)
    if event == "import" and not arguments[0].startswith(("encodings", "smalti.convert")):
        sys.stderr.write(f"FAILED: import {arguments[0]}\n")
        os._exit(1)


command()
for part in (golden_files, options, other_models, damaged):
    part()
files = [path.read_bytes() for path in (save({"state_dict": tiny()}), save_old(tiny()))]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sys.addaudithook(watch)
fuzz(files, 600)
more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
check(more < 300 << 10, f"damaged files took {more} KiB of memory")
check(not Path("executed").exists(), "a file was executed")
