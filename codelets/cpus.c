/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "codelets/codelets.h"
#include "kernels/backward.h"
#include "kernels/conditioning.h"
#include "kernels/kernels.h"
#include "kernels/layout.h"
#include "kernels/rows.h"
#include "samplers/noise.h"

/* The functions of the rows of codelets.def that are one call. */
#define CPU_CALL(name, call)                                                                                 \
	int smalti_cpu_##name(const struct name##_data *data, const struct name##_arguments *a,              \
			      struct smalti_error *error)                                                    \
	{                                                                                                    \
		(void)data, (void)a, (void)error;                                                            \
		return call;                                                                                 \
	}
#define CPU_KERNEL(name, call) CPU_CALL(name, ((void)(call), 0))
#include "codelets/codelets.def"
