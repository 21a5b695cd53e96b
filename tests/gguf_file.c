/* SPDX-License-Identifier: Apache-2.0 */
#include "gguf_file.h"

#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 32, Q8_0 = 8, BLOCK = 32, BLOCK_BYTES = 34 };

void gguf_integer(FILE *file, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		fputc((int)(value >> (8 * i) & 0xff), file);
}

void gguf_header(FILE *file, uint32_t version, uint64_t tensors, uint64_t pairs)
{
	fputs("GGUF", file);
	gguf_integer(file, version, 4);
	gguf_integer(file, tensors, 8);
	gguf_integer(file, pairs, 8);
}

void gguf_text(FILE *file, const char *text)
{
	gguf_integer(file, strlen(text), 8);
	fputs(text, file);
}

void gguf_u32_pair(FILE *file, const char *key, uint32_t value)
{
	gguf_text(file, key);
	gguf_integer(file, GGUF_U32, 4);
	gguf_integer(file, value, 4);
}

void gguf_text_pair(FILE *file, const char *key, const char *value)
{
	gguf_text(file, key);
	gguf_integer(file, GGUF_STRING, 4);
	gguf_text(file, value);
}

void gguf_tensor(FILE *file, const char *name, int rank, const int64_t *shape, uint32_t type, uint64_t offset)
{
	gguf_text(file, name);
	gguf_integer(file, (uint64_t)rank, 4);
	for (int i = rank - 1; i >= 0; i--)
		gguf_integer(file, (uint64_t)shape[i], 8);
	gguf_integer(file, type, 4);
	gguf_integer(file, offset, 8);
}

void gguf_pad(FILE *file, long multiple)
{
	while (ftell(file) % multiple)
		fputc(0, file);
}

unsigned char *gguf_q8_0(const float *values, int64_t count)
{
	unsigned char *blocks = malloc((size_t)(count / BLOCK * BLOCK_BYTES)), *to = blocks;
	for (int64_t i = 0; i < count; i += BLOCK, to += BLOCK_BYTES) {
		const float d = (float)(test_max_abs(values + i, BLOCK) / 127), inverse = d > 0 ? 1 / d : 0;
		const uint16_t half = smalti_f32_to_f16(d);
		memcpy(to, &half, sizeof(half));
		for (int j = 0; j < BLOCK; j++)
			to[2 + j] = (unsigned char)(int8_t)roundf(values[i + j] * inverse);
	}
	return blocks;
}

void gguf_write(const char *path, const struct smalti_tensor_view *tensors, int64_t count,
		const char *architecture, const char *key, const char *text)
{
	static const uint32_t types[] = {[SMALTI_F32] = 0, [SMALTI_F16] = 1, [SMALTI_BF16] = 30};
	FILE *file = fopen(path, "wb");
	uint64_t offset = 0;
	gguf_header(file, 3, (uint64_t)count, 2);
	gguf_text_pair(file, "general.architecture", architecture);
	gguf_text_pair(file, key, text);
	for (int64_t i = 0; i < count; i++) {
		gguf_tensor(file, tensors[i].name, tensors[i].rank, tensors[i].shape,
			    tensors[i].coding ? Q8_0 : types[tensors[i].dtype], offset);
		offset += (uint64_t)smalti_round_up(tensors[i].bytes, ALIGNMENT);
	}
	for (int64_t i = 0; i < count; i++) {
		gguf_pad(file, ALIGNMENT);
		fwrite(tensors[i].data, 1, (size_t)tensors[i].bytes, file);
	}
	CHECK(fclose(file) == 0, path);
}
