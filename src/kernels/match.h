/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A row that was found (matches.h). Included by device kernels, too. */
struct smalti_match {
	int64_t row; /* -1: none */
	float score; /* -INFINITY where there is none */
	int32_t unused;
};
