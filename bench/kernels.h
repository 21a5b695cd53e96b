/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bench/cases.h"
#include "bench/roofline.h"

/* One case, measured in the calling thread, on buffers that stay where they are from call to call. */
struct smalti_bench_kernel {
	double seconds; /* of one call: the median of the repeats */
	double least;   /* the quickest repeat */
	double flops, bytes;
	double peak;  /* operations per second; of f32: at the clock at which the repeats ran */
	double bound; /* seconds that the machine's arithmetic or memory takes at least */
	bool memory;  /* it is the memory's */
};

/* After a call that is not counted; each repeat is as many calls as take 10 ms. */
int smalti_bench_kernel(const struct smalti_bench_case *c, int repeats,
			const struct smalti_roofline *roofline, struct smalti_bench_kernel *result,
			struct smalti_error *error);
