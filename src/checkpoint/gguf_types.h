/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"
#include "checkpoint/coding.h"

/* The types of GGUF's tensors: blocks of neighbouring values of a row, with what they share. */
struct smalti_gguf_type {
	struct smalti_coding coding; /* decode NULL: the type is known, but not read */
	bool usable;                 /* it is this dtype, and no coding */
	enum smalti_dtype dtype;
};

/* Returns the type of a number in a file; NULL: nobody knows it. */
const struct smalti_gguf_type *smalti_gguf_type(uint32_t number);
