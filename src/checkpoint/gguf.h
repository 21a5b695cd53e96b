/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/safetensors.h"

/* A file of llama.cpp's format GGUF, version 2 or 3, checked as a whole when it is opened: every view lies in
 * the file, no two overlap, and each name is there once. */
struct smalti_gguf {
	struct smalti_map map;
	/* The metadata as an object of numbers, booleans and strings; arrays, and texts that are longer than
	 * a configuration, are left out. */
	cJSON *metadata;
	struct smalti_tensor_view
	    *tensors; /* in bytewise order of their names; shapes with the fastest axis last */
	char *names;  /* of the tensors */
	int64_t count;
	int64_t header_bytes; /* before the tensors' data */
};

struct smalti_gguf *smalti_gguf_open(const char *path, struct smalti_error *error);
/* Parses `size` bytes of memory, which the caller keeps until after the close. */
struct smalti_gguf *smalti_gguf_parse(const void *data, int64_t size, struct smalti_error *error);
void smalti_gguf_close(struct smalti_gguf *file); /* NULL is allowed */
