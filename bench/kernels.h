/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bench/cases.h"
#include "bench/roofline.h"

/* One case, measured in the calling thread, on buffers that stay in place from call to call. */
struct smalti_bench_kernel {
	double seconds; /* of one call: the median of the repeats */
	double least;   /* the fastest repeat */
	double flops, bytes;
	double peak;  /* operations per second; of f32: at the clock at which the repeats ran */
	double bound; /* least seconds by the machine's arithmetic or memory */
	bool memory;  /* the bound is the memory's */
};

/* Measures a case after a call that does not count; each repeat has as many calls as take 10 ms. */
int smalti_bench_kernel(const struct smalti_bench_case *c, int repeats,
			const struct smalti_roofline *roofline, struct smalti_bench_kernel *result,
			struct smalti_error *error);
