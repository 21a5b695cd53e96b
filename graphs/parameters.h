/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/config.h"
#include "graphs/strategy/strategy.h"
#include "rt/tile.h"

enum { SMALTI_PARAMETER_RANK = 4 };

/* The part of a tensor that a shard has: some of its rows or columns along one dimension. */
struct smalti_parameter_cut {
	bool is_part; /* false: the tensor is whole and belongs to no shard */
	int shard, dimension;
	int64_t first, whole; /* where the part begins, and */
};

struct smalti_trained_functions; /* graphs/trained_pass.h */

/* A tensor of the denoiser that is trained, or a shard's part of one. */
struct smalti_parameter {
	const char *name;
	int rank;
	int64_t shape[SMALTI_PARAMETER_RANK], count;
	int64_t tensor; /* its index among the tensors */
	struct smalti_parameter_cut cut;
	enum smalti_dtype dtype; /* f32, but for what is not trained and only products read, which round it */
	struct smalti_tile *value; /* [count], laid out as the file has it */
};

/* All parameters of a denoiser, in bytewise order of their names; a tensor's parts follow each other. */
struct smalti_parameters {
	int64_t count;
	const struct smalti_trained_functions *architecture; /* whose tensors they are */
	struct smalti_parameters *base;                      /* of adapters: what stays as it is; else NULL */
	double scale;                                        /* of adapters: s */
	const struct smalti_strategy *strategy;              /* that cuts them; outlives them */
	int shards;
	struct smalti_inventory inventory; /* owns the names */
	struct smalti_parameter *list;
};

/* Makes the parameters; the caller or smalti_parameters_read() writes their values. If the strategy has
 * shards, the weights of attention by heads and of MLPs by columns are cut. The tiles belong to the task
 * group. NULL with an error; a task group that breaks leaves tiles NULL. */
struct smalti_parameters *smalti_parameters_new(struct smalti_task_group *task_group,
						const struct smalti_trained_functions *architecture,
						const struct smalti_transformer_config *config,
						const struct smalti_strategy *strategy,
						struct smalti_error *error);
/* Describes a low-rank adapter to be trained. */
struct smalti_lora_shape {
	int64_t rank;
	double alpha;
	/* The matrices that it changes: "attention", "all" as PixArt's script has them, or the last parts of
	 * their names with commas between, such as "to_q,ff.net.2". */
	const char *targets;
};
/* Makes the parameters of an adapter: of each matrix of `base` that it changes A [rank, in] and B [out,
 * rank], or convolutions of as many values, under peft's names. `base`, which outlives them, is not trained.
 */
struct smalti_parameters *smalti_adapter_parameters_new(struct smalti_task_group *task_group,
							struct smalti_parameters *base,
							const struct smalti_lora_shape *shape,
							struct smalti_error *error);
/* Returns a name without peft's prefix. */
const char *smalti_parameter_module(const char *name);
/* Inserts the task that takes a parameter's value from the whole tensor in its dtype. */
void smalti_parameter_take(const struct smalti_parameter *parameter, struct smalti_task_group *task_group,
			   struct smalti_tile *whole);
/* Describes tensor `index` as a parameter without a value. */
struct smalti_parameter smalti_parameter_of(const struct smalti_tensor_view *tensor, int64_t index);
/* Returns the whole tensor of a parameter, without a value. */
struct smalti_parameter smalti_parameter_whole(const struct smalti_parameter *parameter);
/* How a parameter lies in its tensor: `rows` pieces of `columns` values, `in` apart, from `first` on. */
struct smalti_parameter_layout {
	int64_t rows, in, first, columns;
};
struct smalti_parameter_layout smalti_parameter_layout(const struct smalti_parameter *parameter);
/* Inserts the tasks that convert the checkpoint's tensors to the parameters' dtypes. The checkpoint stays
 * open until they have ended. Coded ones are decoded, but refused if the parameters are trained. */
int smalti_parameters_read(const struct smalti_parameters *parameters, struct smalti_task_group *task_group,
			   const struct smalti_transformer_config *config,
			   const struct smalti_checkpoint *checkpoint, bool trains,
			   struct smalti_error *error);
/* Stores a parameter, which has no value yet, in another dtype. */
void smalti_parameter_store_as(struct smalti_parameter *parameter, struct smalti_task_group *task_group,
			       enum smalti_dtype dtype);
/* Frees them after the last task that reads them was inserted; each value lives until its last reader has
 * ended. NULL is allowed. */
void smalti_parameters_free(struct smalti_parameters *parameters);

/* Returns the index of a tensor, or of its first part, in the list; -1: no tensor has that name. */
int64_t smalti_parameters_find(const struct smalti_parameters *parameters, const char *name);
/* Returns a new tile of a parameter's size and dtype, such as for its gradient. */
struct smalti_tile *smalti_parameter_tile(const struct smalti_parameter *parameter,
					  struct smalti_task_group *task_group);
