/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/devices.h"
#include "kernels/conditioning.h"
#include "kernels/groupnorm.h"
#include "rt/task.h"

#include <xxhash.h>

/* The buffers of each op. */
#define R(b)         {#b, SMALTI_READ, false, 1},
#define OR(b)        {#b, SMALTI_READ, true, 1},
#define W(b)         {#b, SMALTI_WRITE, false, 1},
#define OW(b)        {#b, SMALTI_WRITE, true, 1},
#define U(b)         {#b, SMALTI_UPDATE, false, 1},
#define OU(b)        {#b, SMALTI_UPDATE, true, 1},
#define WU(b, when)  {#b, SMALTI_WRITE_OR_UPDATE, false, 1},
#define OWU(b, when) {#b, SMALTI_WRITE_OR_UPDATE, true, 1},
#define MANY(b)      {#b, SMALTI_READ, true, SMALTI_MANY},
#define CODELET(name, work, list, members, flops, bytes)                                                     \
	static const struct smalti_buffer name##_list[] = {list};
#include "codelets/codelets.def"

/* Tells whether an op updates a buffer that it may write. */
#define R(b)         false,
#define OR(b)        false,
#define W(b)         false,
#define OW(b)        false,
#define U(b)         true,
#define OU(b)        true,
#define WU(b, when)  (when),
#define OWU(b, when) (when),
#define MANY(b)      false,
#define CODELET(name, work, list, members, flops, bytes)                                                     \
	static bool name##_updates(const void *arguments, int kind)                                          \
	{                                                                                                    \
		const struct name##_arguments *a = arguments;                                                \
		(void)a;                                                                                     \
		return (const bool[]){list}[kind];                                                           \
	}
#include "codelets/codelets.def"

/* Defines each op's key, arithmetic, untyped wrapper, and the limits that the runtime relies on. */
#define K(m) key = XXH32(&a->m, sizeof(a->m), key);
#define P(m)
#define CODELET(name, work, list, members, flop_count, byte_count)                                           \
	static uint32_t name##_key(const void *arguments, uint32_t key)                                      \
	{                                                                                                    \
		const struct name##_arguments *a = arguments;                                                \
		members return key;                                                                          \
	}                                                                                                    \
	static double name##_flops(const void *arguments)                                                    \
	{                                                                                                    \
		const struct name##_arguments *a = arguments;                                                \
		(void)a;                                                                                     \
		return flop_count;                                                                           \
	}                                                                                                    \
	static double name##_bytes(const void *arguments)                                                    \
	{                                                                                                    \
		const struct name##_arguments *a = arguments;                                                \
		(void)a;                                                                                     \
		return byte_count;                                                                           \
	}                                                                                                    \
	static int name##_cpu(const void *data, const void *arguments, struct smalti_error *error)           \
	{                                                                                                    \
		return smalti_cpu_##name(data, arguments, error);                                            \
	}                                                                                                    \
	_Static_assert(sizeof(struct name##_arguments) <= SMALTI_MAX_ARGUMENTS,                              \
		       #name ": too many arguments");                                                        \
	_Static_assert(sizeof(struct name##_buffers) <= SMALTI_MAX_BUFFERS * sizeof(void *),                 \
		       #name ": too many buffers");
#include "codelets/codelets.def"

#define K(m) hash = XXH32(&a->m, sizeof(a->m), hash);
#define P(m) K(m)
#define CODELET(name, work, list, members, flop_count, byte_count)                                           \
	static uint32_t name##_value(const void *arguments, uint32_t hash)                                   \
	{                                                                                                    \
		const struct name##_arguments *a = arguments;                                                \
		members return hash;                                                                         \
	}
#include "codelets/codelets.def"

#define K(m)
#define T(m) dtype = a->m;
#define I(m) dtype = a->m ? SMALTI_I8 : dtype;
#define P(m)
#define CODELET(name, work, list, members, flop_count, byte_count)                                           \
	static enum smalti_dtype name##_dtype(const void *arguments)                                         \
	{                                                                                                    \
		const struct name##_arguments *a = arguments;                                                \
		enum smalti_dtype dtype = SMALTI_F32;                                                        \
		(void)a;                                                                                     \
		members return dtype;                                                                        \
	}
#include "codelets/codelets.def"

static const struct smalti_op ops[] = {
#define CODELET(op_name, op_work, list, members, flop_count, byte_count)                                     \
	{.name = #op_name,                                                                                   \
	 .work = SMALTI_##op_work,                                                                           \
	 .buffers = op_name##_list,                                                                          \
	 .buffer_kinds = (int)(sizeof(op_name##_list) / sizeof(op_name##_list[0])),                          \
	 .arguments_size = sizeof(struct op_name##_arguments),                                               \
	 .updates = op_name##_updates,                                                                       \
	 .key = op_name##_key,                                                                               \
	 .value = op_name##_value,                                                                           \
	 .dtype = op_name##_dtype,                                                                           \
	 .flops = op_name##_flops,                                                                           \
	 .bytes = op_name##_bytes,                                                                           \
	 .run = op_name##_cpu,                                                                               \
	 .device = &smalti_device_runs[SMALTI_OP_##op_name]},
#include "codelets/codelets.def"
};

/* Hands the table to the runtime, which names no directory above its own. */
__attribute__((constructor)) static void hand_over(void)
{
	smalti_ops = ops;
	smalti_op_count = SMALTI_OPS;
}

#define CODELET(name, work, list, members, flops, bytes)                                                     \
	void smalti_insert_##name(struct smalti_task_group *task_group,                                      \
				  const struct name##_buffers *buffers,                                      \
				  const struct name##_arguments *arguments)                                  \
	{                                                                                                    \
		smalti_task_insert(task_group, &ops[SMALTI_OP_##name], (struct smalti_tile *const *)buffers, \
				   arguments);                                                               \
	}
#include "codelets/codelets.def"
