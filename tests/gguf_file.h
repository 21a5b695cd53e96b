/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/safetensors.h"

#include <stdio.h>

/* Writing of GGUF files, good ones and bad ones. */

enum { GGUF_U32 = 4, GGUF_F32 = 6, GGUF_STRING = 8, GGUF_ARRAY = 9 };

void gguf_header(FILE *file, uint32_t version, uint64_t tensors, uint64_t pairs);
void gguf_integer(FILE *file, uint64_t value, int bytes);
void gguf_text(FILE *file, const char *text);
void gguf_u32_pair(FILE *file, const char *key, uint32_t value);
void gguf_text_pair(FILE *file, const char *key, const char *value);
/* Describes a tensor; its shape has the fastest axis last. */
void gguf_tensor(FILE *file, const char *name, int rank, const int64_t *shape, uint32_t type,
		 uint64_t offset);
/* Writes zeros up to a multiple. */
void gguf_pad(FILE *file, long multiple);
/* Rounds values, whose count is a multiple of 32, to Q8_0: returns blocks of 34 bytes, for free(). */
unsigned char *gguf_q8_0(const float *values, int64_t count);
/* Writes a file of tensors of F32, F16 and BF16, coded ones of Q8_0, with a text of metadata. */
void gguf_write(const char *path, const struct smalti_tensor_view *tensors, int64_t count,
		const char *architecture, const char *key, const char *text);
