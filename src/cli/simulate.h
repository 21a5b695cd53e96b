/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/command.h"
#include "smalti/generate.h"
#include "smalti/model.h"
#include "smalti/session.h"

/* The options of `smalti simulate`, and of smalti-sim, which it starts for each policy; strings belong to
 * argv. */
struct smalti_simulate_options {
	const char *machine, *sched, *model, *measured, *calibrate;
	bool machines, blocking, json;
	struct smalti_request request;
	int precision; /* enum smalti_precision */
	int64_t cpus, gpus;
	int64_t gpu_memory_limit;
	const char *trace;
	enum smalti_simulated_job {
		SMALTI_SIMULATED_IMAGES,
		SMALTI_SIMULATED_TRAINING,
		SMALTI_SIMULATED_EXTRACTION
	} job;
	int64_t caption_tokens; /* of each caption of training and extraction; 0: SMALTI_CAPTION_TOKENS */
	struct smalti_simulated_extraction {
		int64_t items, image_size;
		bool t5, vae; /* neither: both */
	} extraction;
	struct smalti_simulated_training {
		int64_t batch, lanes, micro;
		int recomputation, optimizer; /* enum smalti_recomputation, enum smalti_optimizer_kind */
		int64_t lora_rank;            /* of an adapter; 0: all is trained */
		const char *lora_targets;     /* NULL: those of smalti train */
	} training;
	struct { /* options that not every job has */
		bool prompt, images, steps, guidance, grain;
		bool caption_tokens, items, image_size;
		bool batch, lanes, micro, recomputation, optimizer;
	} given;
};

enum { SMALTI_CAPTION_TOKENS = 300 };

/* The operands that name the jobs, ended by NULL. */
extern const char *const smalti_simulated_jobs[];
/* Reads what is to be simulated. */
int smalti_simulate_operands(struct smalti_simulate_options *options, int count, char **operands,
			     struct smalti_error *error);

enum smalti_exit smalti_simulate_run(void *options, int count, char **operands);

/* Variables that tell smalti-sim's process its machine: the directory with StarPU's files, and their name. */
#define SMALTI_MACHINE_DIRECTORY "STARPU_PERF_MODEL_DIR"
#define SMALTI_MACHINE_HOST      "STARPU_HOSTNAME"
