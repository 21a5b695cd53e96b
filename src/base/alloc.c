/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <stdarg.h>

enum { ALIGNMENT = 64, FIRST_ITEMS = 16 };

bool smalti_multiply(int64_t *product, int64_t factor)
{
	return *product >= 0 && factor >= 0 && !__builtin_mul_overflow(*product, factor, product);
}

bool smalti_multiply_extents(int64_t *product, const int64_t *extents, int count)
{
	bool empty = false;
	for (int i = 0; i < count; i++) {
		empty = empty || extents[i] == 0;
		if (!smalti_multiply(product, extents[i] ? extents[i] : 1))
			return false;
	}
	*product = empty ? 0 : *product;
	return true;
}

static int64_t checked_bytes(int64_t count, int64_t size, struct smalti_error *error)
{
	int64_t bytes = count;
	if (!smalti_multiply(&bytes, size) || bytes > INT64_MAX - ALIGNMENT)
		return smalti_fail(error, SMALTI_ENOMEM, "%lld items of %lld bytes do not fit in memory",
				   (long long)count, (long long)size);
	return bytes;
}

static int out_of_memory(int64_t bytes, struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_ENOMEM, "out of memory (%lld bytes were wanted)", (long long)bytes);
}

void *smalti_calloc(int64_t count, int64_t size, struct smalti_error *error)
{
	int64_t bytes = checked_bytes(count, size, error);
	if (bytes < 0)
		return NULL;
	void *memory = calloc(1, bytes ? (size_t)bytes : 1);
	if (!memory)
		out_of_memory(bytes, error);
	return memory;
}

/* Grows the memory to 16 items at first, then to powers of two. */
int smalti_grow(void *items, int64_t count, int64_t size, struct smalti_error *error)
{
	const bool full = count == 0 || (count >= FIRST_ITEMS && (count & (count - 1)) == 0);
	if (!full)
		return 0;
	void *memory;
	memcpy(&memory, items, sizeof(memory));
	const int64_t bytes = checked_bytes(count ? 2 * count : FIRST_ITEMS, size, error);
	memory = bytes < 0 ? NULL : realloc(memory, (size_t)bytes);
	if (!memory)
		return bytes < 0 ? -1 : out_of_memory(bytes, error);
	memcpy(items, &memory, sizeof(memory));
	return 0;
}

int smalti_grow_to(void *items, int64_t *count, int64_t index, int64_t size, struct smalti_error *error)
{
	if (index < *count)
		return 0;
	void *old;
	memcpy(&old, items, sizeof(old));
	void *memory = smalti_calloc(2 * (index + 1), size, error);
	if (!memory)
		return -1;
	if (*count)
		memcpy(memory, old, (size_t)(*count * size));
	free(old);
	memcpy(items, &memory, sizeof(memory));
	*count = 2 * (index + 1);
	return 0;
}

void *smalti_aligned_alloc(int64_t count, int64_t size, struct smalti_error *error)
{
	int64_t bytes = checked_bytes(count, size, error);
	if (bytes < 0)
		return NULL;
	size_t rounded = ((size_t)bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
	void *memory = aligned_alloc(ALIGNMENT, rounded);
	if (!memory)
		out_of_memory(bytes, error);
	return memory;
}

char *smalti_format(struct smalti_error *error, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	char *text = NULL;
	int length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0) {
		out_of_memory(0, error);
		return NULL;
	}
	return text;
}

void smalti_append(char *text, size_t size, const char *between, const char *format, ...)
{
	size_t length = strlen(text);
	va_list args;
	if (length)
		length += (size_t)snprintf(text + length, size - length, "%s", between);
	va_start(args, format);
	if (length < size)
		vsnprintf(text + length, size - length, format, args);
	va_end(args);
}

int64_t smalti_stem(const char *text, const char *ending)
{
	const int64_t stem = (int64_t)strlen(text) - (int64_t)strlen(ending);
	return stem >= 0 && strcmp(text + stem, ending) == 0 ? stem : -1;
}
