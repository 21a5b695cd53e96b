/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Memory that is reserved for the packed form of a weight. */
struct smalti_packed {
	void *data;
	int64_t bytes;
};

/* Refuses to write `bytes` to memory that has fewer. */
int smalti_packed_check(struct smalti_packed packed, int64_t bytes, struct smalti_error *error);
