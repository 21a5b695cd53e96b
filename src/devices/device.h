/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype_enum.h"

/* A device with its own memory, as operations compute with it. Nothing here waits for the device: it runs
 * commands in order, and StarPU waits for the last one. */

/* The device of a StarPU worker: its queue, its compiled kernels, its scratch. Only that worker calls with
 * it. */
struct smalti_device;

struct smalti_device_memory {
	void *memory; /* an address of CUDA's, or OpenCL's cl_mem */
	int64_t bytes;
};

enum { SMALTI_MAX_BUFFERS = 32 }; /* of an operation, and of a kernel */
struct smalti_launch {
	const char *kernel;
	int64_t groups;
	int threads; /* of one group */
};

/* Runs a kernel of src/kernels/device: its parameters are the buffers (NULL: absent) and then the struct of
 * arguments, by value. 0, or -1 with an error. */
int smalti_device_launch(struct smalti_device *device, const struct smalti_launch *launch,
			 const struct smalti_device_memory *const *buffers, int count, const void *arguments,
			 size_t argument_bytes, struct smalti_error *error);

/* Returns about how many f32 operations it can do in a second, by what its driver says. */
double smalti_device_speed(const struct smalti_device *device);

/* Returns the share of the time since `since` (seconds after 1970) in which kernels of any program ran on it,
 * by its driver; NAN: not known. */
double smalti_device_utilisation(const struct smalti_device *device, double since);

/* Return the bytes of its memory that tiles have, and tiles, scratch and locals. For its worker. @{ */
int64_t smalti_device_tiles(const struct smalti_device *device);
int64_t smalti_device_in_use(const struct smalti_device *device);
/* @} */

/* Work that gives a device its commands: run() only gives them, and waits for none. */
enum { SMALTI_DEVICE_OPERATIONS = 768 }; /* of one work at most */
struct smalti_device_work {
	int (*run)(void *user, struct smalti_error *error);
	void *user;
};
/* Does the work, or has the device repeat the commands of earlier work with the same key. The caller knows
 * that they are equal, whatever the memories hold. 0, or -1 with an error. Only if the device can. @{ */
bool smalti_device_can_repeat(const struct smalti_device *device);
int smalti_device_repeat(struct smalti_device *device, uint64_t key, const struct smalti_device_work *work,
			 struct smalti_error *error);
/* @} */
/* Returns how often it has repeated commands. For its worker. */
int64_t smalti_device_repeats(const struct smalti_device *device);

/* Waits until its commands so far have ended. */
int smalti_device_finish(struct smalti_device *device, struct smalti_error *error);

/* y[rows, out] (+)= x[rows, in]·w[out, in]ᵀ (+ bias[out]), or its GELU (the tanh form); offsets and strides
 * in elements. A turned operand lies in memory as its transpose. */
struct smalti_device_product {
	int64_t rows, in, out, x_first, x_stride, w_first, w_stride, y_first, y_stride;
	bool turned_x, turned_w;
	/* With several products (0: there is one), the distance from one matrix to the next. */
	int64_t count, x_step, w_step, y_step;
	bool adds, gelu; /* not both */
	/* Of x and w: one that smalti_device_operands() returns, or of integers of 8 bits, which gives sums
	 * in 32. */
	enum smalti_dtype dtype;
	/* Without smalti_device_makes() for these and the dtypes, only f32 without a bias or GELU. */
	enum smalti_dtype result;                /* of y */
	const struct smalti_device_memory *bias; /* NULL: none */
	int64_t bias_first;
	enum smalti_dtype bias_dtype;
};
bool smalti_device_makes(const struct smalti_device *device, const struct smalti_device_product *product);
int smalti_device_product(struct smalti_device *device, const struct smalti_device_product *product,
			  const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			  const struct smalti_device_memory *y, struct smalti_error *error);
/* Returns the dtype of products' operands that are rounded to `compute`: `compute` itself, or f32. */
enum smalti_dtype smalti_device_operands(const struct smalti_device *device, enum smalti_dtype compute);

/* Operations that may run beside each other keep to lanes, which have their own scratch and locals. What
 * follows is for the lane that was set, else for lane 0. */
enum { SMALTI_DEVICE_LANES = 3 };
void smalti_device_set_lane(struct smalti_device *device, int lane);
/* Begins an operation: the scratch of those before it is free. */
void smalti_device_begin_step(struct smalti_device *device);
/* While commands are recorded: lets the operation that begins wait only for these before it, counted from 0,
 * at most one of each lane (-1: none). */
void smalti_device_follow(struct smalti_device *device, const int behind[SMALTI_DEVICE_LANES]);
/* Returns the bytes that an operation should keep to in a slot whose size it may choose. */
int64_t smalti_device_room(const struct smalti_device *device);
/* The shares of a device's memory, in bytes. */
struct smalti_device_shares {
	int64_t workspace, tiles;
	int64_t task; /* for the tiles of one task, beside those of others; its scratch takes twice that */
};
struct smalti_device_shares smalti_device_shares_of(int64_t total);
struct smalti_device_shares smalti_device_shares(unsigned memory_node);

/* y [rows / stride, width / stride, out] = x [rows + 2 (stride 2: + 1), width, in] ∗ w [out, 3, 3, in], all
 * of `dtype`. x includes the row above (except for stride 2) and the row below; columns outside are zeros.
 * Only if the device has it; else products make it. */
struct smalti_device_convolution {
	int64_t rows, width, in, out, stride;
	enum smalti_dtype dtype;
};
bool smalti_device_has_convolution(struct smalti_device *device, const struct smalti_device_convolution *c);
int smalti_device_convolve(struct smalti_device *device, const struct smalti_device_convolution *c,
			   const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			   const struct smalti_device_memory *y, struct smalti_error *error);

/* y [queries, heads, head_dim] = scaled dot-product attention of q, shaped like y, to kv [keys, 2, heads,
 * head_dim]. If it is biased, bias [heads, queries, keys] is added to the scaled scores. All have `dtype`
 * (f16 or bf16). Only if the device has it; else a kernel does it. */
struct smalti_device_sdpa {
	int64_t queries, keys, heads, head_dim;
	enum smalti_dtype dtype;
	bool biased;
};
bool smalti_device_has_sdpa(struct smalti_device *device, const struct smalti_device_sdpa *sdpa);
int smalti_device_sdpa(struct smalti_device *device, const struct smalti_device_sdpa *sdpa,
		       const struct smalti_device_memory *q, const struct smalti_device_memory *kv,
		       const struct smalti_device_memory *bias, float scale,
		       const struct smalti_device_memory *y, struct smalti_error *error);

/* Attention of `queries` tokens to the tokens of one tile, as in struct attend_arguments. Rows of q are
 * `q_stride` elements apart, rows of keys and values `kv_stride`; they begin at k_first and v_first in these.
 * Has running state (kernels/attention.h) unless the tile is both first and last. Only if the device has a
 * kernel for it; else others compute it. */
struct smalti_device_attend_tile {
	int64_t queries, keys, heads, head_dim, q_stride, kv_stride, k_first, v_first;
	enum smalti_dtype dtype; /* of q, kv and y */
	float scale;
	bool first, last;
	const struct smalti_device_memory *q, *kv;
	const struct smalti_device_memory *state, *y, *lse; /* NULL: none */
};
bool smalti_device_attends_tile(struct smalti_device *device, const struct smalti_device_attend_tile *a);
int smalti_device_attend_tile(struct smalti_device *device, const struct smalti_device_attend_tile *a,
			      struct smalti_error *error);

/* Returns memory of at least `bytes` bytes, which is in use until the next call with that slot. NULL with an
 * error. The last slot is the driver's. */
enum { SMALTI_DEVICE_DRIVER = 8, SMALTI_DEVICE_SCRATCH };
const struct smalti_device_memory *smalti_device_scratch(struct smalti_device *device, int slot,
							 int64_t bytes, struct smalti_error *error);

/* Take and give back memory of `bytes` bytes for a tile of one task. Commands given before may still use it
 * then. NULL with an error. @{ */
const struct smalti_device_memory *smalti_device_take(struct smalti_device *device, int64_t bytes,
						      struct smalti_error *error);
void smalti_device_give(struct smalti_device *device, const struct smalti_device_memory *memory);
/* @} */

/* Sets whether products of f32 may round their operands to TF32, before the first product. */
void smalti_device_set_tf32(struct smalti_device *device, bool tf32);
