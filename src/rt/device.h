/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype_enum.h"

/* What operations compute with on a device that has a memory of its own. Nothing here waits for the device:
 * it runs what it is given in order, and StarPU waits for the last of it. */

/* A StarPU worker's device: its queue, its compiled kernels, its scratch. Only that worker calls with it. */
struct smalti_device;

struct smalti_device_memory {
	void *memory; /* an address of CUDA's, or OpenCL's cl_mem */
	int64_t bytes;
};

struct smalti_launch {
	const char *kernel;
	int64_t groups;
	int threads; /* of a group */
};

/* Runs a kernel of src/kernels/device: its parameters are the buffers (NULL: absent) and then the struct of
 * arguments, by value. 0, or -1 with an error. */
int smalti_device_launch(struct smalti_device *device, const struct smalti_launch *launch,
			 const struct smalti_device_memory *const *buffers, int count, const void *arguments,
			 size_t argument_bytes, struct smalti_error *error);

/* The f32 operations that it could do in a second, about, by what its driver says. */
double smalti_device_speed(const struct smalti_device *device);

/* The share of the time since so many seconds after 1970 in which kernels ran on it, whoever's, by its
 * driver; NAN: it is not known. */
double smalti_device_utilisation(const struct smalti_device *device, double since);

/* Bytes of its memory that tiles, scratch and locals have; by its worker. */
int64_t smalti_device_in_use(const struct smalti_device *device);

/* What gives a device its commands: run() alone, without waiting for any of them. */
struct smalti_device_work {
	int (*run)(void *user, struct smalti_error *error);
	void *user;
};
/* Does the work, or has the device repeat the commands that it was given by work with the same key: for who
 * knows that they are the same, whatever the memories hold. 0, or -1 with an error. Only if the device can.
 * @{
 */
bool smalti_device_can_repeat(const struct smalti_device *device);
int smalti_device_repeat(struct smalti_device *device, uint64_t key, const struct smalti_device_work *work,
			 struct smalti_error *error);
/* @} */
/* Returns how often it has repeated commands; for its worker. */
int64_t smalti_device_repeats(const struct smalti_device *device);

/* Waits until what it was given has ended. */
int smalti_device_finish(struct smalti_device *device, struct smalti_error *error);

/* y[rows, out] (+)= x[rows, in]·w[out, in]ᵀ (+ bias[out]), or its GELU (the tanh form); offsets and strides
 * in elements. One that is turned lies in memory as its transpose. */
struct smalti_device_product {
	int64_t rows, in, out, x_first, x_stride, w_first, w_stride, y_first, y_stride;
	bool turned_x, turned_w;
	/* Of several products (0: there is one), each matrix begins so far behind that of the one before. */
	int64_t count, x_step, w_step, y_step;
	bool adds, gelu;         /* not both */
	enum smalti_dtype dtype; /* of x and w: one that smalti_device_operands() tells */
	/* Else than f32 without a bias or GELU only if smalti_device_makes(): by these and the dtypes. */
	enum smalti_dtype result;                /* of y */
	const struct smalti_device_memory *bias; /* NULL: none */
	int64_t bias_first;
	enum smalti_dtype bias_dtype;
};
bool smalti_device_makes(const struct smalti_device *device, const struct smalti_device_product *product);
int smalti_device_product(struct smalti_device *device, const struct smalti_device_product *product,
			  const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			  const struct smalti_device_memory *y, struct smalti_error *error);
/* What products take operands in that are rounded to `compute`: that, or f32. */
enum smalti_dtype smalti_device_operands(const struct smalti_device *device, enum smalti_dtype compute);

/* Operations that may run beside each other keep to lanes, which have scratch and locals of their own: what
 * follows is for this lane, else for lane 0. */
enum { SMALTI_DEVICE_LANES = 3 };
void smalti_device_set_lane(struct smalti_device *device, int lane);
/* Before each operation: what those before it had as scratch is free. */
void smalti_device_begin_step(struct smalti_device *device);
/* Where commands are recorded: the operation that begins has to wait for no more than these before it,
 * counted from 0, one of each lane at most (-1: none). */
void smalti_device_follow(struct smalti_device *device, const int behind[SMALTI_DEVICE_LANES]);
/* Bytes that one operation should keep to in a slot whose size it may choose. */
int64_t smalti_device_room(const struct smalti_device *device);
/* Says what a device's memory is for, in bytes. */
struct smalti_device_shares {
	int64_t workspace, tiles;
	int64_t task; /* for the tiles of one, beside which are others'; its scratch takes twice that */
};
struct smalti_device_shares smalti_device_shares_of(int64_t total);
struct smalti_device_shares smalti_device_shares(unsigned memory_node);

/* y [rows / stride, width / stride, out] = x [rows + 2 (stride 2: + 1), width, in] ∗ w [out, 3, 3, in], all
 * of `dtype`. x has the rows above (but for stride 2) and below; columns beyond it are zeros. Only if the
 * device has it: else it is made of products. */
struct smalti_device_convolution {
	int64_t rows, width, in, out, stride;
	enum smalti_dtype dtype;
};
bool smalti_device_has_convolution(struct smalti_device *device, const struct smalti_device_convolution *c);
int smalti_device_convolve(struct smalti_device *device, const struct smalti_device_convolution *c,
			   const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			   const struct smalti_device_memory *y, struct smalti_error *error);

/* y [queries, heads, head_dim] = scaled dot-product attention of q, like y, to kv [keys, 2, heads, head_dim],
 * with bias [heads, queries, keys] added to the scaled scores if it is biased, all of `dtype` (f16 or bf16).
 * Only if the device has it: else a kernel does it. */
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

/* Attention of `queries` tokens to the tokens of one tile, as struct attend_arguments has it: a row of q has
 * `q_stride` elements, one of keys and values `kv_stride`, in which they begin at k_first and v_first. With
 * running state (kernels/attention.h) unless it is the first and the last tile. Only if the device has a
 * kernel for that: else others compute it. */
struct smalti_device_attend_tile {
	int64_t queries, keys, heads, head_dim, q_stride, kv_stride, k_first, v_first;
	enum smalti_dtype dtype; /* of q, k, v and y */
	float scale;
	bool first, last;
	const struct smalti_device_memory *q, *k, *v;
	const struct smalti_device_memory *state, *y, *lse; /* NULL: none */
};
bool smalti_device_attends_tile(struct smalti_device *device, const struct smalti_device_attend_tile *a);
int smalti_device_attend_tile(struct smalti_device *device, const struct smalti_device_attend_tile *a,
			      struct smalti_error *error);

/* Memory of at least `bytes` bytes; what was in the slot is in use until the next call with that slot. NULL
 * with an error. */
enum { SMALTI_DEVICE_SCRATCH = 8 };
const struct smalti_device_memory *smalti_device_scratch(struct smalti_device *device, int slot,
							 int64_t bytes, struct smalti_error *error);

/* Memory of so many bytes for a tile that lives in one task, until it is given back; what the device was told
 * to do before still has it. NULL with an error. @{ */
const struct smalti_device_memory *smalti_device_take(struct smalti_device *device, int64_t bytes,
						      struct smalti_error *error);
void smalti_device_give(struct smalti_device *device, const struct smalti_device_memory *memory);
/* @} */

/* For sessions: how many devices of each driver. */
enum smalti_device_driver_number { SMALTI_OPENCL_DEVICES, SMALTI_CUDA_DEVICES, SMALTI_DEVICE_DRIVERS };
struct smalti_device_counts {
	int64_t of[SMALTI_DEVICE_DRIVERS], sum; /* at most */
	int64_t least[SMALTI_DEVICE_DRIVERS];   /* fewer, where all that there are were asked for */
};

/* `wanted` (-1: all that there are), unless the user's variables say otherwise. SMALTI_EINVAL, or
 * SMALTI_ENODEV for a driver that was not built. */
int smalti_devices_count(const int64_t wanted[SMALTI_DEVICE_DRIVERS], struct smalti_device_counts *counts,
			 struct smalti_error *error);
/* How many megabytes a driver's devices may have: StarPU's variable for all of them; for one it is the
 * prefix, _N and _MEM. */
struct smalti_device_limit {
	const char *prefix, *variable;
};
enum { SMALTI_LEAST_DEVICE = 2 }; /* megabytes */
const struct smalti_device_limit *smalti_devices_limit(int driver);
/* Returns the bytes of a driver's smallest device, before StarPU begins; INT64_MAX where they are not known.
 */
int64_t smalti_devices_least_memory(int driver);
/* When StarPU runs: the devices of its workers, by the workers' numbers (NULL: a CPU's). NULL with
 * SMALTI_ENODEV (too few), SMALTI_EUNSUPPORTED or SMALTI_ENOMEM. */
struct smalti_device **smalti_devices_open(const struct smalti_device_counts *counts,
					   struct smalti_error *error);
/* Whether products of f32 may round their operands to TF32: before the first one. */
void smalti_device_set_tf32(struct smalti_device *device, bool tf32);
/* Before StarPU stops; its workers must be idle. NULL is allowed. */
void smalti_devices_close(struct smalti_device **devices);
