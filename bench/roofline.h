/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* The rates of one thread of this machine: the bounds that kernels are compared with. */
struct smalti_roofline {
	double f32;   /* operations per second in registers, at the highest clock; an addition and a
		       * multiplication are two */
	double bf16;  /* of a large product by the library; 0 where bf16 is multiplied as f32 */
	double read;  /* bytes per second, of memory beyond the caches */
	double triad; /* of z = x + a·y, likewise, counted once per load and store */
};

/* Measures the best of many short pieces, in about a second. -1 with SMALTI_ENOMEM. */
int smalti_roofline_measure(struct smalti_roofline *roofline, struct smalti_error *error);
