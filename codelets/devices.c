/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/devices.h"
#include "kernels/device/parts.h"

/* For the rows of codelets.def. */
#define GROUPS_OF(count, threads) (((count) + (threads)-1) / (threads))
#define WORDS(bytes)              (((bytes) + 3) / 4)

#define DEVICE_KERNEL(name, group_count, group_threads)                                                      \
	static int name##_device(struct smalti_device *device,                                               \
				 const struct smalti_device_memory *const *memories, const void *arguments,  \
				 struct smalti_error *error)                                                 \
	{                                                                                                    \
		const struct name##_arguments *a = arguments;                                                \
		const struct smalti_launch launch = {#name, (group_count), (group_threads)};                 \
		const int count = (int)(sizeof(struct name##_memories) / sizeof(*memories));                 \
		return smalti_device_launch(device, &launch, memories, count, a, sizeof(*a), error);         \
	}
#define DEVICE_FUNCTION(name)                                                                                \
	static int name##_device(struct smalti_device *device,                                               \
				 const struct smalti_device_memory *const *memories, const void *arguments,  \
				 struct smalti_error *error)                                                 \
	{                                                                                                    \
		return smalti_device_##name(device, (const struct name##_memories *)memories, arguments,     \
					    error);                                                          \
	}
#include "codelets/codelets.def"

const smalti_device_run smalti_device_runs[SMALTI_OPS] = {
#define DEVICE_KERNEL(name, groups, threads) [SMALTI_OP_##name] = name##_device,
#define DEVICE_FUNCTION(name)                [SMALTI_OP_##name] = name##_device,
#include "codelets/codelets.def"
};
