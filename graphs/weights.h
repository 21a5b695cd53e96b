/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"
#include "checkpoint/checkpoint.h"
#include "rt/tile.h"

/* The weights of one component. They lie in the mapped checkpoint, in its dtype. A task in front of the first
 * reader makes the form that kernels want (f32 vectors, matrices packed for this CPU), once.
 *
 * Errors are sticky: after the first one every call returns NULL (or an empty struct), and the weights keep
 * the cause. So a loader reads like the list of tensors. */
struct smalti_weights {
	struct smalti_task_group *task_group;
	struct smalti_task_group_source files;
	const struct smalti_checkpoint *checkpoint; /* that they lie in */
	const struct smalti_parameters *parameters; /* in training; else NULL */
	enum smalti_dtype compute;
	/* Made forms live only until smalti_weight_done() and are made again at the next use; else as long as
	 * the weights. May be set before the first use. */
	bool transient;
	/* Matrices that smalti_weights_linear() adds now bear products of integers of 8 bits: they are such
	 * where the checkpoint wants them. */
	bool bears_w8a8;
	struct smalti_error error;
	struct smalti_weight *first;
	int64_t bytes;
};
struct smalti_weight;

/* A matrix [out, in] with its bias [out] (NULL: none). */
struct smalti_linear {
	struct smalti_weight *weight, *bias;
	int64_t in, out;
	enum smalti_dtype compute;
	bool w8a8;                                   /* products are of integers of 8 bits */
	const struct smalti_low_rank_pair *low_rank; /* of adapters that are not merged; NULL: none */
	const struct smalti_low_rank_pair *trained;  /* of an adapter in training; NULL: none */
};

/* What such adapters add to x·Wᵀ: (x·downᵀ)·upᵀ; `down` has their matrices A on top of each other, `up` their
 * w·s·B beside each other. In training each part of a stacked matrix has a pair of its own, A and B, which
 * adds s·(x·Aᵀ)·Bᵀ to columns `first` on. */
struct smalti_low_rank_pair {
	struct smalti_linear down, up;
	int64_t first;
	double scale;
	const struct smalti_low_rank_pair *next;
};

/* A 3×3 convolution [out, in, 3, 3] with its bias. */
struct smalti_kernel {
	struct smalti_weight *weight, *bias;
	int64_t in, out;
	int stride;
};

/* The affine part of a GroupNorm over `channels`. */
struct smalti_affine {
	struct smalti_weight *gamma, *beta;
	int64_t channels;
};

/* Makes the weights, with packed forms by tasks of `task_group`, the model's; `compute` is the dtype of
 * matrix products unless a call says otherwise. The checkpoint outlives them. Without `task_group` only names
 * and sizes are known (graphs/tensors.h). */
struct smalti_weights *smalti_weights_new(struct smalti_task_group *task_group,
					  const struct smalti_checkpoint *checkpoint,
					  enum smalti_dtype compute, struct smalti_error *error);
/* Makes the weights of a model in training: parameters (graphs/parameters.h), which outlive them. Matrices
 * are raw. Only vectors, matrices and rows can be had of them. */
struct smalti_parameters;
struct smalti_weights *smalti_weights_of_parameters(const struct smalti_parameters *parameters,
						    enum smalti_dtype compute, struct smalti_error *error);
int smalti_weights_status(const struct smalti_weights *weights, struct smalti_error *error);
/* Returns the bytes of all packed forms together, made or not; 0 when they are transient. */
int64_t smalti_weights_bytes(const struct smalti_weights *weights);
/* Returns the bytes of the tensors in the file. */
int64_t smalti_weights_file_bytes(const struct smalti_weights *weights);
/* Returns the bytes that CPUs read: of the file for raw ones, else of the forms, made or not. */
int64_t smalti_weights_read_bytes(const struct smalti_weights *weights);
/* Returns the bytes that all of them, or one, take on a device. @{ */
int64_t smalti_weights_device_bytes(const struct smalti_weights *weights);
int64_t smalti_weight_device_bytes(const struct smalti_weight *weight);
/* @} */
/* Tells whether at least one weight has 8-bit rows. */
bool smalti_weights_have_rows8(const struct smalti_weights *weights);
/* Leaves the matrices of smalti_weights_linear() unpacked, before the first use of a weight. Products read
 * the file's form, which is slower and takes no memory. Results differ by rounding. */
void smalti_weights_leave_raw(struct smalti_weights *weights);
/* Waits for the model's task group, then releases the tiles, after the last task that reads them was
 * inserted. NULL is allowed. */
void smalti_weights_free(struct smalti_weights *weights);

/* Adds a tensor as f32 [count]. */
struct smalti_weight *smalti_weights_vector(struct smalti_weights *weights, int64_t count, const char *name,
					    ...) __attribute__((format(printf, 3, 4)));
/* Adds a table [rows, columns] that stays in the file's dtype, which *dtype receives. Of one that is coded
 * there, or that adapters change, the form is f32. */
struct smalti_weight *smalti_weights_table(struct smalti_weights *weights, int64_t rows, int64_t columns,
					   enum smalti_dtype *dtype, const char *name);
/* Adds a table that products read. It becomes 8-bit rows if the file has such, or if the checkpoint wants
 * integers; *dtype receives the dtype of their codes. */
struct smalti_weight *smalti_weights_factor(struct smalti_weights *weights, int64_t rows, int64_t columns,
					    enum smalti_dtype *dtype, const char *name);
/* Adds rows first … first + rows − 1 of such a table. */
struct smalti_weight *smalti_weights_table_rows(const struct smalti_weight *table, int64_t first,
						int64_t rows, int64_t columns);
/* Adds a table as f32. */
struct smalti_weight *smalti_weights_rows(struct smalti_weights *weights, int64_t rows, int64_t columns,
					  const char *name);
/* Adds several tables of [rows, columns] on top of each other, as f32: `name` holds one %d. */
struct smalti_weight *smalti_weights_stack(struct smalti_weights *weights, int64_t count, int64_t rows,
					   int64_t columns, const char *name);

/* Adds up to 3 matrices [out, in] stacked along out: prefix + part + ".weight" (and ".bias"). They stay rows
 * of 8 bits if the file has all of them so. */
struct smalti_linear smalti_weights_linear(struct smalti_weights *weights, int64_t in, int64_t out, bool bias,
					   const char *prefix, const char *const parts[3]);
/* Adds a 1×1 convolution [out, in, 1, 1], which is a matrix. */
struct smalti_linear smalti_weights_linear_1x1(struct smalti_weights *weights, int64_t in, int64_t out,
					       const char *prefix);
/* Adds a tensor of any shape as the matrix [shape[0], product of the others], for products in `compute`. */
struct smalti_linear smalti_weights_reshaped(struct smalti_weights *weights, const int64_t *shape, int rank,
					     enum smalti_dtype compute, const char *prefix);
/* Adds a matrix that is not in a file: f32 [out, in] at `values`, which the weights free, even after an
 * error. */
struct smalti_linear smalti_weights_given(struct smalti_weights *weights, int64_t in, int64_t out,
					  enum smalti_dtype compute, float *values);
struct smalti_kernel smalti_weights_conv(struct smalti_weights *weights, int64_t in, int64_t out, int stride,
					 const char *prefix);
struct smalti_affine smalti_weights_affine(struct smalti_weights *weights, int64_t channels,
					   const char *prefix);

/* Slices a linear layer: `out` rows of each part from first_out on, `in` columns from first_in on. The result
 * has its own forms, and a bias if `bias` and the layer has one. The layer is not raw. */
struct smalti_slice {
	int64_t first_out, out, first_in, in;
};
struct smalti_linear smalti_weights_slice(const struct smalti_linear *of, const struct smalti_slice *slice,
					  bool bias);

/* Returns the tile, and makes it if needed. NULL for NULL, and when the model's task group has failed. */
struct smalti_tile *smalti_weight_tile(struct smalti_weight *weight);
/* Returns the tile. That of a transient convolution is not made, and takes no memory, before `after` has been
 * written. */
struct smalti_tile *smalti_weight_tile_after(struct smalti_weight *weight, struct smalti_tile *after);
/* Says that the last task that reads it for now has been inserted. NULL is allowed. */
void smalti_weight_done(struct smalti_weight *weight);

/* Tells whether it has 8-bit rows, and returns the dtype of their codes. @{ */
bool smalti_weight_is_rows8(const struct smalti_weight *weight);
enum smalti_dtype smalti_weight_rows8(const struct smalti_weight *weight);
/* @} */
/* Describes a matrix that is left raw. Part `index` (below 3) is one of those stacked; NULL past the last. */
bool smalti_weight_is_raw(const struct smalti_weight *weight);
struct smalti_tile *smalti_weight_part(struct smalti_weight *weight, int index);
const struct smalti_tensor_view *smalti_weight_view(const struct smalti_weight *weight, int index);

/* Tells whether it is a parameter, and which one in the list part `index` is; -1: one that is not trained. @{
 */
bool smalti_weight_is_trained(const struct smalti_weight *weight);
int64_t smalti_weight_parameter(const struct smalti_weight *weight, int index);
/* @} */
/* Stores the matrices that an adapter in training leaves as they are in the dtype that products round them
 * to, before they have values: their tiles are new ones of `task_group`. */
void smalti_weights_store_base(struct smalti_weights *weights, struct smalti_task_group *task_group);
/* Begins and ends the time between two changes of the parameters. Meanwhile products read copies, rounded to
 * their dtype, where that pays, and biases of stacked matrices are joined (graphs/trained_weights.c). @{ */
void smalti_weights_begin_step(struct smalti_weights *weights, struct smalti_task_group *task_group);
void smalti_weights_end_step(struct smalti_weights *weights);
/* @} */

/* Inserts tasks about the memory of a table, or of its transient form: to begin reading or making it when
 * `after` has been written, and to give it back behind all readers so far. */
void smalti_weight_read_ahead(struct smalti_task_group *task_group, struct smalti_weight *weight,
			      struct smalti_tile *after);
void smalti_weight_drop(struct smalti_task_group *task_group, struct smalti_weight *weight);
