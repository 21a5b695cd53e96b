/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A row that was found (matches.h). Device kernels include it, too. */
struct smalti_match {
	int64_t row; /* -1: none */
	float score; /* -INFINITY: none */
	int32_t unused;
};
