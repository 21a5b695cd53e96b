/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/devices.h"
#include "kernels/device/parts.h"

#define KERNEL(name, group_count, group_threads)                                                             \
	static int name##_device(struct smalti_device *device,                                               \
				 const struct smalti_device_memory *const *memories, const void *arguments,  \
				 struct smalti_error *error)                                                 \
	{                                                                                                    \
		const struct name##_arguments *a = arguments;                                                \
		const struct smalti_launch launch = {#name, (group_count), (group_threads)};                 \
		const int count = (int)(sizeof(struct name##_memories) / sizeof(*memories));                 \
		return smalti_device_launch(device, &launch, memories, count, a, sizeof(*a), error);         \
	}
#define FUNCTION(name)                                                                                       \
	static int name##_device(struct smalti_device *device,                                               \
				 const struct smalti_device_memory *const *memories, const void *arguments,  \
				 struct smalti_error *error)                                                 \
	{                                                                                                    \
		return smalti_device_##name(device, (const struct name##_memories *)memories, arguments,     \
					    error);                                                          \
	}
#include "codelets/devices.def"

const smalti_device_run smalti_device_runs[SMALTI_OPS] = {
#define KERNEL(name, groups, threads) [SMALTI_OP_##name] = name##_device,
#define FUNCTION(name)                [SMALTI_OP_##name] = name##_device,
#include "codelets/devices.def"
};
