/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codelets/codelets.h"
#include "devices/device.h"
#include "rt/op.h"

/* struct NAME_memories: the buffers of a task as a device has them; NULL: absent. smalti_device_NAME()
 * launches what makes the operation. */
#define INPUT(b)  const struct smalti_device_memory *b;
#define OUTPUT(b) const struct smalti_device_memory *b;
#define CODELET(name, work, list, members, flops, bytes)                                                     \
	struct name##_memories {                                                                             \
		list                                                                                         \
	};
#define DEVICE_FUNCTION(name)                                                                                \
	int smalti_device_##name(struct smalti_device *device, const struct name##_memories *data,           \
				 const struct name##_arguments *a, struct smalti_error *error);
#include "codelets/codelets.def"

/* The devices' functions of all operations; NULL: none. */
extern const smalti_device_run smalti_device_runs[SMALTI_OPS];
