/* SPDX-License-Identifier: Apache-2.0 */
/* Defines struct NAME_arguments of every operation, for the host (arguments.h) and device kernels
 * (src/kernels/device/arguments.h), which have the members' types. Includes nothing else. */
#define drop_pages_arguments         read_ahead_arguments
#define unpatchify_arguments         patchify_arguments
#define silu_backward_arguments      gelu_backward_arguments
#define gate_backward_arguments      gated_sum_arguments
#define unit_rows_backward_arguments unit_rows_arguments
#define contrast_gradient_arguments  contrast_sums_arguments
#define ARGUMENTS(name, ...)                                                                                 \
	struct name##_arguments {                                                                            \
		__VA_ARGS__                                                                                  \
	};
#include "codelets/codelets.def"
