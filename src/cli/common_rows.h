/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/options.h"
#include "jobs/precision.h"
#include "smalti/session.h"
#include "text/cleaning.h"

/* Options with one meaning in several commands; those of the machine are in a struct smalti_session_options
 * `session`. */

/* clang-format off */
#define SMALTI_PRECISION_ROW(type, field) \
	{SMALTI_CHOICE(type, field), "precision", 0, "TYPE", \
	 "data type of the operands of matrix products and convolutions; f16 ends at 65504, too early for some models; " \
	 "tf32 is for CUDA devices; w8a8 and w8a8-bf16 are for images: f32 and bf16, with integers of 8 bits in the transformer's blocks", .choices = smalti_precisions}

#define SMALTI_CLEANING_ROW(type, field, texts) \
	{SMALTI_CHOICE(type, field), "clean", 0, "HOW", \
	 "how " texts " are preprocessed: raw keeps them, basic strips spaces and converts to lower case, full also removes " \
	 "links, markup and the like, strip only strips spaces", .choices = smalti_cleanings}

#define SMALTI_TEXT_ENCODER_PRECISION_ROW(type, field) \
	{SMALTI_CHOICE(type, field), "text-encoder-precision", 0, "TYPE", \
	 "how the text encoder's weights are in memory: stored, as in the file; int8, in a quarter of f32's memory, with an " \
	 "error of about 1 % in the text; w8a8, like that, and most products are of integers", .choices = smalti_text_encoder_precisions}

/* `model` is a struct smalti_model_options. */
#define SMALTI_TEXT_ENCODER_ROWS(type, model) \
	{SMALTI_STRING(type, model.tokenizer), "tokenizer", 0, "DIR", \
	 "load the tokenizer from DIR instead of the pipeline"}, \
	{SMALTI_STRING(type, model.text_encoder), "text-encoder", 0, "DIR", "load the text encoder from DIR, or from a .gguf file"}, \
	SMALTI_TEXT_ENCODER_PRECISION_ROW(type, model.text_encoder_precision)

#define SMALTI_LORA_ROW(type, field) \
	{SMALTI_LIST(type, field), "lora", 0, "PATH[:WEIGHT]", \
	 "change the model by the LoRA or DoRA adapter in PATH, a safetensors file or a directory of peft or diffusers, " \
	 "times WEIGHT (default 1)"}

#define SMALTI_MODEL_ROW(type, field) \
	{SMALTI_STRING(type, field), "model", 'm', "DIR", \
	 "directory of a PixArt pipeline in diffusers' layout; default: the embedded model"}

#define SMALTI_VARIANT_ROW(type, field) \
	{SMALTI_STRING(type, field), "variant", 0, "NAME", "variant of the weight files, such as fp16"}

#define SMALTI_MEMORY_ROW(type) \
	{SMALTI_BYTES(type, session.memory_limit), "memory-limit", 0, "SIZE", \
	 "use at most SIZE of memory, such as 800M or 24G; default: all that is available", .minimum = 1 << 20, .maximum = INT64_MAX}

#define SMALTI_SCRATCH_ROW(type) \
	{SMALTI_STRING(type, session.scratch), "scratch", 0, "DIR", \
	 "directory for data that does not fit under --memory-limit; StarPU leaves empty directories there"}

#define SMALTI_WORKER_ROWS(type) \
	{SMALTI_INT64(type, session.cpus), "cpus", 0, "N", "number of CPU workers; 0: one per core", .minimum = 0, \
	 .maximum = INT64_MAX}, \
	{SMALTI_INT64(type, session.cuda), "cuda", 0, "N", "number of CUDA devices to compute on, too; -1: all that there are", \
	 .minimum = -1, .maximum = INT64_MAX}, \
	{SMALTI_INT64(type, session.opencl), "opencl", 0, "N", "number of OpenCL devices to compute on, too", .minimum = 0, \
	 .maximum = INT64_MAX}, \
	{SMALTI_BYTES(type, session.gpu_memory_limit), "gpu-memory-limit", 0, "SIZE", \
	 "use at most SIZE of each device's memory; weights that do not fit are loaded again when they are read", \
	 .minimum = 1 << 20, .maximum = INT64_MAX}

#define SMALTI_REPRODUCIBLE_ROW(type) \
	{SMALTI_FLAG(type, session.reproducible), "reproducible", 0, NULL, \
	 "with devices: run all that they can on devices and nothing else, so that results repeat to the bit whatever the " \
	 "policy; the devices have to be of one kind"}

#define SMALTI_POLICY_ROW(type) \
	{SMALTI_STRING(type, session.policy), "sched", 0, "POLICY", \
	 "StarPU scheduling policy, or replay:FILE, a schedule; default: lws, with devices dmdas; the results do not depend on it, but with devices see --reproducible"}

/* The workers, policy and memory of a session. */
#define SMALTI_SESSION_ROWS(type) \
	SMALTI_POLICY_ROW(type), \
	SMALTI_WORKER_ROWS(type), \
	SMALTI_REPRODUCIBLE_ROW(type), \
	SMALTI_MEMORY_ROW(type)

#define SMALTI_TRACE_ROW(type) \
	{SMALTI_STRING(type, session.trace), "trace", 0, "FILE", "write a trace of all tasks in the Chrome/Perfetto format"}

#define SMALTI_TILE_ROWS_ROW(type, field) \
	{SMALTI_INT64(type, field), "tile-rows", 0, "N", \
	 "latent rows per tile of the VAE; 0: chosen by the size", .minimum = 0, .maximum = INT64_MAX}

#define SMALTI_TILE_TOKENS_ROW(type, field) \
	{SMALTI_INT64(type, field), "tile-tokens", 0, "N", \
	 "tokens per tile of the transformer; 0: chosen by the size", .minimum = 0, .maximum = INT64_MAX}

#define SMALTI_SHARES_ROW(type, field, what, more) \
	{SMALTI_STRING(type, field), "shares", 0, "A:B:...", \
	 "distribute " what ": the shares of the CPUs and of each device in turn" more "; auto: by the measured " \
	 "speed of the devices; default: the scheduling policy places each task"}

#define SMALTI_TOKEN_SHARES_ROW(type, field) \
	SMALTI_SHARES_ROW(type, field, "the transformer's tokens", \
			  "; append ,A:B:...@STEP to change them from that step on")

/* `request` is a struct smalti_request. */
#define SMALTI_PIPELINE_ROWS(type, request) \
	{SMALTI_INT64(type, request.patches), "patches", 0, "N", \
	 "with pipeline: cut the tokens into N patches that follow each other; 0: as many as stages", .minimum = 0, \
	 .maximum = SMALTI_PATCHES_MAX}, \
	{SMALTI_INT64(type, request.warmup), "warmup", 0, "N", \
	 "with pipeline and displaced: the first N passes are synchronous; 0: one", .minimum = 0, .maximum = SMALTI_STEPS_MAX}

#define SMALTI_STRATEGY_ROW(type, field) \
	{SMALTI_STRING(type, field), "strategy", 0, "NAME", \
	 "spread the transformer over devices: patch, ring, ulysses, tensor, cfg or a mix such as hybrid:cfg2.ulysses2.ring2, " \
	 "which are exact; auto, the one of these that should be fastest; pipeline, displaced, masked, naive, naive-columns or " \
	 "naive-alternating, which are not exact; NAME may end in the number of parts; default with --shares: patch"}
/* clang-format on */
