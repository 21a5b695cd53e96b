/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/spiece.h"

enum {
	BLOCK_BYTES = 256 * 4, /* the builder allots units in blocks of 256 */
	MAX_DEPTH = 64,
	MAX_MATCHES = 32,
	MAX_REPLACEMENT = 64, /* the longest of NFKC has 33 bytes */
	UNSEEN = 0xff,
};

struct trie {
	const uint8_t *units;
	uint32_t count;
	const char *pool;
	size_t pool_length;
	uint8_t *matches; /* by base: the most matches on a path below it */
};

static uint32_t load32(const uint8_t *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static uint32_t unit_at(const struct trie *trie, uint32_t position)
{
	return load32(trie->units + 4 * (size_t)position);
}

static uint32_t offset_of(uint32_t unit)
{
	return (unit >> 10) << ((unit & 0x200) >> 6);
}

static int check_replacement(const struct trie *trie, uint32_t base, struct smalti_error *error)
{
	size_t at = unit_at(trie, base) & 0x7fffffff;
	if (at >= trie->pool_length)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "precompiled_charsmap: a replacement lies outside the pool");
	if (strnlen(trie->pool + at, MAX_REPLACEMENT + 1) > MAX_REPLACEMENT)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "precompiled_charsmap: a replacement of more than %d bytes",
				   (int)MAX_REPLACEMENT);
	return 0;
}

/* Checks every path from `base`, the position that the next byte is XORed to. Suffixes share nodes, so
 * visited ones are remembered; a cycle shows as depth. */
static int walk(struct trie *trie, uint32_t base, int depth, struct smalti_error *error)
{
	if (base >= trie->count)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "precompiled_charsmap: a node lies outside the array");
	if (depth > MAX_DEPTH)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "precompiled_charsmap: a rule for more than %d bytes", (int)MAX_DEPTH);
	if (trie->matches[base] != UNSEEN)
		return 0;
	int max = 0;
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t unit = unit_at(trie, base ^ byte);
		if ((unit & 0x800000ff) != byte)
			continue;
		uint32_t next = base ^ byte ^ offset_of(unit);
		if (walk(trie, next, depth + 1, error))
			return -1;
		bool leaf = unit >> 8 & 1;
		if (leaf && check_replacement(trie, next, error))
			return -1;
		int matches = trie->matches[next] + leaf;
		max = matches > max ? matches : max;
	}
	if (max > MAX_MATCHES)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "precompiled_charsmap: more than %d rules for one text", (int)MAX_MATCHES);
	trie->matches[base] = (uint8_t)max;
	return 0;
}

int smalti_charsmap_check(const uint8_t *blob, size_t length, struct smalti_error *error)
{
	uint32_t bytes = length > 4 ? load32(blob) : 0;
	if (bytes == 0 || bytes % BLOCK_BYTES != 0 || bytes >= length - 4 || blob[length - 1] != 0)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "precompiled_charsmap: its array of %u bytes does not fit its %zu bytes",
				   bytes, length);
	struct trie trie = {
	    .units = blob + 4,
	    .count = bytes / 4,
	    .pool = (const char *)blob + 4 + bytes,
	    .pool_length = length - 4 - bytes,
	    .matches = smalti_calloc(bytes / 4, 1, error),
	};
	if (!trie.matches)
		return -1;
	memset(trie.matches, UNSEEN, trie.count);
	int status = walk(&trie, offset_of(unit_at(&trie, 0)), 0, error);
	free(trie.matches);
	return status;
}
