/* SPDX-License-Identifier: Apache-2.0 */
/* struct NAME_arguments of codelets.def, for kernels: a bool there is a byte. */
typedef long smalti_offload_writer, smalti_offload_reader, smalti_row_source, smalti_row_sink,
    smalti_float_sink;
#define bool uchar
#include "samplers/step.h"
#define drop_pages_arguments read_ahead_arguments
#define unpatchify_arguments patchify_arguments
#define ARGUMENTS(name, ...)                                                                                 \
	struct name##_arguments {                                                                            \
		__VA_ARGS__                                                                                  \
	};
#define CODELET(name, list, members, flops, bytes)
#include "codelets/codelets.def"
#undef bool
