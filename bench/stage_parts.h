/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bench/stages.h"
#include "checkpoint/checkpoint.h"
#include "rt/tile.h"

/* An open stage: its component and its inputs. */
struct smalti_stage_run {
	const struct smalti_stage_spec *stage;
	const struct smalti_stage_model *model;
	struct smalti_session *session;
	struct smalti_task_group *weights; /* of the tasks that make weights and inputs */
	struct smalti_checkpoint *checkpoint;
	void *state;           /* the kind's own */
	int64_t width, height; /* of the image */
};

/* The functions of a kind: open reads the component and makes inputs, insert adds the tasks of one run. */
struct smalti_stage_part {
	int (*open)(struct smalti_stage_run *run, struct smalti_error *error);
	void (*insert)(struct smalti_stage_run *run, struct smalti_task_group *task_group);
	void (*close)(struct smalti_stage_run *run); /* also when open failed halfway; state may be NULL */
};

extern const struct smalti_stage_part smalti_stage_t5, smalti_stage_dit, smalti_stage_decode,
    smalti_stage_encode, smalti_stage_train;

/* Opens the checkpoint of a component's directory. */
int smalti_stage_checkpoint(struct smalti_stage_run *run, const char *component, const char *stem,
			    struct smalti_error *error);
/* Returns "DIRECTORY/COMPONENT/config.json", to be freed. */
char *smalti_stage_config(const struct smalti_stage_run *run, const char *component,
			  struct smalti_error *error);
/* Sets the image's size: the stage's, or `native` pixels on each side; a multiple of `multiple`. */
int smalti_stage_size(struct smalti_stage_run *run, int64_t native, int64_t multiple,
		      struct smalti_error *error);
/* Makes a tile [rows, columns] of f32 noise in [-1, 1). */
struct smalti_tile *smalti_stage_noise(struct smalti_task_group *task_group, int64_t rows, int64_t columns);
