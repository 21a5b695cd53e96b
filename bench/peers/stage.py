#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One stage of PixArt by PyTorch and diffusers, or by OpenVINO: the same work as `smalti-bench stages`.

Usage: stage.py [--library torch|compile|openvino] [--device cpu|cuda] [--threads N] [--model DIR] [--t5-layers N]
                [--samples N] [--caption-length N] [--lora-rank R] [--recompute] [--cpu-time] STAGE PRECISION SIZE

`compile` is PyTorch with torch.compile. STAGE is t5, dit, train, step, decode, encode or
generate; PRECISION float32, bfloat16, or, of t5 and dit, int8: the linear layers of the blocks have integers of 8 bits as weights;
PyTorch rounds their inputs to integers, too (quantize_dynamic), OpenVINO those of dit alone, to a fixed range;
SIZE the tokens of a caption for t5, else pixels as in 512x512. Weights are random, in the geometry of PixArt-Sigma, unless DIR has a pipeline
in diffusers' layout. Prints a line of JSON when it is ready (after a run that is not counted), then waits:
each line on its standard input asks for one run, which it answers by a line of JSON with "seconds". --samples and
--caption-length (300: padded; 40: as long as they are) are for train and step. For step, --lora-rank has peft train an adapter of
the attention's matrices instead, and --recompute has PyTorch compute each block again in the backward pass.
--cpu-time counts the process's seconds on CPUs, not the clock's.
"""

import argparse
import contextlib
import json
import math
import os
import resource
import sys
import time

NEGATIVE_TOKENS, PROMPT_TOKENS, CAPTION_LENGTH = 1, 40, 300
T5_LAYERS, FACTOR = 24, 8
RANGE = 4.0
ATTENTION = ["to_q", "to_k", "to_v", "to_out.0"]


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][len("Usage: "):])
    parser.add_argument("--library", choices=("torch", "compile", "openvino"), default="torch")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--model")
    parser.add_argument("--t5-layers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--caption-length", type=int, default=CAPTION_LENGTH)
    parser.add_argument("--lora-rank", type=int, default=0)
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("stage", choices=("t5", "dit", "train", "step", "decode", "encode", "generate"))
    parser.add_argument("precision", choices=("float32", "bfloat16", "int8"))
    parser.add_argument("size")
    given = parser.parse_args()
    if given.library == "openvino" and given.stage in ("generate", "train", "step"):
        parser.error(f"OpenVINO does not run {given.stage} here")
    if given.precision == "int8" and (given.stage not in ("t5", "dit") or given.device != "cpu"):
        parser.error("int8 is of t5 and dit on CPUs")
    if given.library == "openvino" and given.device != "cpu":
        parser.error("OpenVINO runs on CPUs here")
    if given.stage == "generate" and not given.model:
        parser.error("generate needs --model")
    return given


def pixels(size):
    width, height = (int(side) for side in size.split("x"))
    return width, height


def open_vae(given, torch):
    from diffusers import AutoencoderKL

    if given.model:
        return AutoencoderKL.from_pretrained(given.model, subfolder="vae")
    return AutoencoderKL(
        in_channels=3, out_channels=3, latent_channels=4, down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4, block_out_channels=(128, 256, 512, 512), layers_per_block=2,
        sample_size=512)


def make_t5(given, torch):
    """Scaled to all layers: the whole encoder needs 19 GB in float32."""
    from transformers import T5Config, T5EncoderModel

    tokens = int(given.size)
    if given.model:
        model = T5EncoderModel.from_pretrained(given.model, subfolder="text_encoder")
        scale = 1
    else:
        model = T5EncoderModel(T5Config(
            vocab_size=32128, d_model=4096, d_kv=64, d_ff=10240, num_layers=given.t5_layers, num_heads=64,
            feed_forward_proj="gated-gelu", is_gated_act=True, tie_word_embeddings=False))
        scale = T5_LAYERS / given.t5_layers
    ids = torch.randint(3, 32000, (1, tokens))

    class Stage(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids, mask):
            return self.model(ids, attention_mask=mask, return_dict=False)[0]

    return Stage(), (ids, torch.ones(1, tokens, dtype=torch.long)), scale


def open_transformer(given, width, height):
    from diffusers import PixArtTransformer2DModel

    if given.model:
        return PixArtTransformer2DModel.from_pretrained(given.model, subfolder="transformer")
    return PixArtTransformer2DModel(sample_size=max(width, height), use_additional_conditions=False,
                                    caption_channels=4096)


def make_dit(given, torch):
    width, height = (side // FACTOR for side in pixels(given.size))
    model = open_transformer(given, width, height)
    channels = model.config.caption_channels or model.inner_dim
    mask = torch.zeros(2, CAPTION_LENGTH)
    mask[0, :NEGATIVE_TOKENS] = 1
    mask[1, :PROMPT_TOKENS] = 1

    class Stage(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x, text, timestep, mask):
            return self.model(x, encoder_hidden_states=text, timestep=timestep, encoder_attention_mask=mask,
                              added_cond_kwargs={"resolution": None, "aspect_ratio": None},
                              return_dict=False)[0]

    return Stage(), (torch.randn(2, model.config.in_channels, height, width),
                     torch.randn(2, CAPTION_LENGTH, channels), torch.tensor([500, 500]), mask), 1


def make_decode(given, torch):
    vae = open_vae(given, torch)
    width, height = (side // FACTOR for side in pixels(given.size))

    class Stage(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.vae = vae

        def forward(self, z):
            return self.vae.decode(z, return_dict=False)[0]

    return Stage(), (torch.randn(1, vae.config.latent_channels, height, width),), 1


def make_encode(given, torch):
    vae = open_vae(given, torch)
    width, height = pixels(given.size)

    class Stage(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.vae = vae

        def forward(self, x):
            return self.vae._encode(x)

    return Stage(), (torch.randn(1, 3, height, width),), 1


def caption_mask(given, torch):
    """None where captions are not padded."""
    if given.caption_length == PROMPT_TOKENS:
        return None
    mask = torch.zeros(given.samples, given.caption_length, device=given.device)
    mask[:, :PROMPT_TOKENS] = 1
    return mask


def make_train(given, torch):
    """The gradients of all parameters for --samples images, whose captions are padded to --caption-length and masked, as
    the model's pipeline and its trainers do; weights in float32, products rounded by autocast."""
    width, height = (side // FACTOR for side in pixels(given.size))
    model = open_transformer(given, width, height).train().to(given.device)
    channels = model.config.caption_channels or model.inner_dim
    x = torch.randn(given.samples, model.config.in_channels, height, width, device=given.device)
    text = torch.randn(given.samples, given.caption_length, channels, device=given.device)
    mask = caption_mask(given, torch)
    gradient = torch.randn(given.samples, model.config.out_channels, height, width, device=given.device)
    timestep = torch.tensor([500] * given.samples, device=given.device)
    forward = torch.compile(model) if given.library == "compile" else model
    mixed = torch.autocast(given.device, torch.bfloat16, enabled=given.precision == "bfloat16")

    def run():
        model.zero_grad(set_to_none=True)
        with torch.enable_grad():
            with mixed:
                y = forward(x, encoder_hidden_states=text, encoder_attention_mask=mask, timestep=timestep,
                            added_cond_kwargs={"resolution": None, "aspect_ratio": None}, return_dict=False)[0]
            y.float().backward(gradient)

    return run, 1


def schedule(torch, t):
    """Of each sample's t: the noise's variance and its product, the product before, in float32 of float64."""
    betas = torch.linspace(1e-4, 0.02, 1000, dtype=torch.float64)
    products = torch.cumprod(1 - betas, 0)
    return [table[t].view(-1, 1, 1, 1) for table in (betas, products, torch.cat([torch.ones(1), products[:-1]]))]


def noised(torch, x0, noise, t):
    _, product, _ = schedule(torch, t)
    return product.sqrt().float() * x0 + (1 - product).sqrt().float() * noise


def diffusion_loss(torch, x0, x_t, noise, t, out):
    """PixArt's: the square error of the noise, and the bound in bits of the variance, whose mean has no gradient (of t > 0)."""
    beta, product, before = schedule(torch, t)
    said, between = out.chunk(2, dim=1)
    start = (x_t - (1 - product).sqrt().float() * said.detach()) / product.sqrt().float()
    true_log = (beta * (1 - before) / (1 - product)).log().float()
    log = (1 + between) / 2 * beta.log().float() + (1 - between) / 2 * true_log
    apart = (beta * before.sqrt() / (1 - product)).float() * (x0 - start)
    bound = 0.5 * (log - true_log - 1 + (true_log - log).exp() + apart ** 2 * (-log).exp())
    return ((said - noise) ** 2).mean() + bound.mean() / math.log(2)


def trained(given, model):
    """The model in training: with all of its parameters, or with an adapter's alone."""
    if given.lora_rank:
        from peft import LoraConfig, inject_adapter_in_model

        config = LoraConfig(r=given.lora_rank, lora_alpha=given.lora_rank, target_modules=ATTENTION)
        model = inject_adapter_in_model(config, model.requires_grad_(False))
    if given.recompute:
        model.enable_gradient_checkpointing()
    return model.train().to(given.device)


def make_step(given, torch):
    """A whole step of training: noise, gradients as of `train`, clipping, AdamW (fused)."""
    width, height = (side // FACTOR for side in pixels(given.size))
    model = trained(given, open_transformer(given, width, height))
    parameters = [values for values in model.parameters() if values.requires_grad]
    channels = model.config.caption_channels or model.inner_dim
    x0 = torch.randn(given.samples, model.config.in_channels, height, width, device=given.device)
    text = torch.randn(given.samples, given.caption_length, channels, device=given.device)
    mask = caption_mask(given, torch)
    optimizer = torch.optim.AdamW(parameters, lr=1e-5, betas=(0.9, 0.999), eps=1e-10, weight_decay=0.03, fused=True)
    forward = torch.compile(model) if given.library == "compile" else model
    mixed = torch.autocast(given.device, torch.bfloat16, enabled=given.precision == "bfloat16")

    def run():
        t, noise = torch.randint(1, 1000, (given.samples,)), torch.randn_like(x0)
        with torch.enable_grad():
            x_t = noised(torch, x0, noise, t)
            with mixed:
                y = forward(x_t, encoder_hidden_states=text, encoder_attention_mask=mask, timestep=t,
                            added_cond_kwargs={"resolution": None, "aspect_ratio": None}, return_dict=False)[0]
            diffusion_loss(torch, x0, x_t, noise, t, y.float()).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return run, 1


def make_generate(given, torch):
    from diffusers import DiffusionPipeline

    width, height = pixels(given.size)
    pipe = DiffusionPipeline.from_pretrained(given.model, torch_dtype=getattr(torch, given.precision))
    pipe = pipe.to(given.device)
    pipe.set_progress_bar_config(disable=True)
    if given.library == "compile":
        pipe.transformer = torch.compile(pipe.transformer)
        pipe.vae.decode = torch.compile(pipe.vae.decode)

    def run():
        pipe("a watercolour of a lighthouse on a cliff above a stormy sea at dusk", width=width, height=height,
             num_inference_steps=given.steps, guidance_scale=4.5, clean_caption=False,
             use_resolution_binning=False)

    return run, 1


def blocks_of(given, stage):
    return stage.model.encoder.block if given.stage == "t5" else stage.model.transformer_blocks


def quantize(given, torch, stage):
    """Has PyTorch multiply integers in the linear layers of the blocks: weights with a scale, inputs with one for each call."""
    torch.ao.quantization.quantize_dynamic(blocks_of(given, stage), {torch.nn.Linear}, torch.qint8, inplace=True)


def by_torch(given, torch):
    if given.stage in ("generate", "train", "step"):
        return globals()["make_" + given.stage](given, torch)
    dtype = torch.float32 if given.precision == "int8" else getattr(torch, given.precision)
    if not given.model:
        torch.set_default_dtype(dtype)  # the memory of one precision only
    model, inputs, scale = globals()["make_" + given.stage](given, torch)
    model = model.eval().to(given.device, dtype)
    inputs = [x.to(given.device, dtype if x.is_floating_point() else x.dtype) for x in inputs]
    if given.precision == "int8":
        quantize(given, torch, model)
    if given.library == "compile":
        model = torch.compile(model)
    return (lambda: model(*inputs)), scale


def integers_of(openvino, weight):
    """A constant [out, in] as integers of 8 bits, times a scale for each row."""
    values = weight.data
    scale = abs(values).max(axis=1, keepdims=True) / 127
    integers = openvino.opset13.constant((values / scale).round().astype("int8"))
    return openvino.opset13.multiply(openvino.opset13.convert(integers, "f32"), openvino.opset13.constant(scale))


def quantize_openvino(openvino, model, inputs_too):
    """Has OpenVINO multiply the integers of the blocks' weights, as its compression makes them, and with `inputs_too` round the inputs.
    Their range changes the values, not the speed."""
    for node in model.get_ordered_ops():
        if node.get_type_name() != "MatMul" or "block" not in node.get_friendly_name():
            continue
        weight = node.input_value(1).get_node()
        if weight.get_type_name() != "Constant":
            continue
        node.input(1).replace_source_output(integers_of(openvino, weight).output(0))
        if inputs_too:
            rounded = openvino.opset13.fake_quantize(node.input_value(0), -RANGE, RANGE, -RANGE, RANGE, 256)
            node.input(0).replace_source_output(rounded.output(0))


def by_openvino(given, torch):
    import openvino
    import openvino.opset13

    model, inputs, scale = globals()["make_" + given.stage](given, torch)
    converted = openvino.convert_model(model.eval().float(), example_input=inputs)
    converted.reshape({at: list(x.shape) for at, x in zip(converted.inputs, inputs)})
    del model
    if given.precision == "int8":
        quantize_openvino(openvino, converted, inputs_too=given.stage == "dit")
    compiled = openvino.Core().compile_model(converted, "CPU", {
        "INFERENCE_PRECISION_HINT": {"bfloat16": "bf16"}.get(given.precision, "f32"),
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": given.threads})
    arrays = [x.numpy() for x in inputs]
    return (lambda: compiled(arrays)), scale


def peak_bytes(given, torch):
    if given.device == "cuda":
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def timed(given, torch, run):
    clock = time.process_time if given.cpu_time else time.perf_counter
    start = clock()
    run()
    if given.device == "cuda":
        torch.cuda.synchronize()
    return clock() - start


def main():
    given = arguments()
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # the libraries' own words
        import torch

        torch.set_grad_enabled(False)
        torch.set_num_threads(given.threads)
        torch.manual_seed(0)
        run, scale = (by_openvino if given.library == "openvino" else by_torch)(given, torch)
        first = timed(given, torch, run) * scale
        answers.write(json.dumps({"library": given.library, "stage": given.stage, "precision": given.precision,
                                  "size": given.size, "first": first,
                                  "peak_bytes": peak_bytes(given, torch)}) + "\n")
        answers.flush()
        for _ in sys.stdin:
            seconds = timed(given, torch, run) * scale
            answers.write(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes(given, torch)}) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
