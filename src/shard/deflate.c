/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/deflate.h"

#include <libdeflate.h>

/* Bytes of zlib's format: a stream's head and its checksum at the end, a stored block's head and what it
 * holds. */
enum { STREAM_HEAD = 2, CHECKSUM = 4, BLOCK_HEAD = 5, BLOCK = 65535 };

int smalti_room_make(struct smalti_room *room, int64_t bytes, struct smalti_error *error)
{
	if (bytes <= room->capacity)
		return 0;
	free(room->bytes);
	room->bytes = smalti_aligned_alloc(bytes, 1, error);
	room->capacity = room->bytes ? bytes : 0;
	return room->bytes ? 0 : -1;
}

/* Moves all first bytes of elements, then all second bytes, and so on, or back; compiled for the sizes that
 * there are. */
static inline void move(const unsigned char *from, int64_t count, int64_t size, bool back, unsigned char *to)
{
	if (back)
		for (int64_t i = 0; i < count; i++)
			for (int64_t byte = 0; byte < size; byte++)
				to[i * size + byte] = from[byte * count + i];
	else
		for (int64_t i = 0; i < count; i++)
			for (int64_t byte = 0; byte < size; byte++)
				to[byte * count + i] = from[i * size + byte];
}

static void shuffle(const unsigned char *from, int64_t bytes, int64_t size, bool back, unsigned char *to)
{
	const int64_t count = bytes / size;
	if (size == 2)
		move(from, count, 2, back, to);
	else if (size == 4)
		move(from, count, 4, back, to);
	else
		move(from, count, size, back, to);
	memcpy(to + count * size, from + count * size, (size_t)(bytes - count * size));
}

void smalti_deflater_free(struct smalti_deflater *deflater)
{
	libdeflate_free_compressor(deflater->compressor);
	libdeflate_free_decompressor(deflater->decompressor);
	free(deflater->shuffled.bytes);
	free(deflater->packed.bytes);
	*deflater = (struct smalti_deflater){0};
}

/* Tells whether a piece of these bytes does not become smaller: the low bits of features are noise. */
static bool is_noise(struct smalti_deflater *deflater, const unsigned char *bytes, int64_t count)
{
	enum { PIECE = 1 << 13 };
	return count >= PIECE &&
	       libdeflate_deflate_compress(deflater->compressor, bytes + (count - PIECE) / 2, PIECE,
					   deflater->packed.bytes, PIECE - 1) == 0;
}

/* Writes stored blocks, none of them the last; behind them a stream goes on at a whole byte. */
static unsigned char *store(const unsigned char *bytes, int64_t count, unsigned char *to)
{
	for (int64_t done = 0, now; done < count; done += now, to += now) {
		now = count - done < BLOCK ? count - done : BLOCK;
		const unsigned char low = (unsigned char)now, high = (unsigned char)(now >> 8);
		memcpy(to, (const unsigned char[BLOCK_HEAD]){0, low, high, ~low & 255, ~high & 255},
		       BLOCK_HEAD);
		to += BLOCK_HEAD;
		memcpy(to, bytes + done, (size_t)now);
	}
	return to;
}

/* Returns the packed stream's bytes; 0: they would be more than `max`. Its first `noise` bytes are only
 * stored. */
static int64_t pack(struct smalti_deflater *deflater, int64_t bytes, int64_t noise, int64_t max)
{
	const unsigned char *shuffled = deflater->shuffled.bytes;
	unsigned char *packed = deflater->packed.bytes;
	const int64_t heads = STREAM_HEAD + (noise + BLOCK - 1) / BLOCK * BLOCK_HEAD;
	const int64_t room = max - heads - noise - CHECKSUM;
	if (room <= 0)
		return 0;
	memcpy(packed, (const unsigned char[STREAM_HEAD]){0x78, 0x01}, STREAM_HEAD);
	unsigned char *at = store(shuffled, noise, packed + STREAM_HEAD);
	const size_t rest = libdeflate_deflate_compress(deflater->compressor, shuffled + noise,
							(size_t)(bytes - noise), at, (size_t)room);
	const uint32_t sum = libdeflate_adler32(1, shuffled, (size_t)bytes);
	at += rest;
	for (int i = 0; i < CHECKSUM; i++)
		at[i] = (unsigned char)(sum >> (24 - 8 * i));
	return rest ? at + CHECKSUM - packed : 0;
}

int smalti_deflate(struct smalti_deflater *deflater, const void *values, int64_t bytes, int64_t size,
		   struct smalti_deflated *deflated, struct smalti_error *error)
{
	if (smalti_room_make(&deflater->shuffled, bytes, error) < 0 ||
	    smalti_room_make(&deflater->packed, bytes, error) < 0)
		return -1;
	if (!deflater->compressor)
		deflater->compressor = libdeflate_alloc_compressor(SMALTI_DEFLATE_LEVEL);
	if (!deflater->compressor)
		return smalti_fail(error, SMALTI_ENOMEM, "out of memory to compress");
	unsigned char *shuffled = deflater->shuffled.bytes;
	if (bytes > 0)
		shuffle(values, bytes, size, false, shuffled);
	*deflated = (struct smalti_deflated){shuffled, bytes, SMALTI_WITHOUT_DEFLATE};
	const int64_t plane = bytes / size;
	int64_t noise = 0;
	while (noise < plane * size && is_noise(deflater, shuffled + noise, plane))
		noise += plane;
	const int64_t packed = pack(deflater, bytes, noise, bytes - 1);
	if (packed)
		*deflated = (struct smalti_deflated){deflater->packed.bytes, packed, 0};
	return 0;
}

int smalti_inflate(struct smalti_deflater *deflater, const struct smalti_deflated *deflated, void *values,
		   int64_t bytes, int64_t size, struct smalti_error *error)
{
	const unsigned char *shuffled = deflated->data;
	if (deflated->mask && deflated->bytes != bytes)
		return smalti_fail(error, SMALTI_ECORRUPT, "a piece that is not compressed has another size");
	if (!deflated->mask) {
		if (smalti_room_make(&deflater->shuffled, bytes, error) < 0)
			return -1;
		if (!deflater->decompressor)
			deflater->decompressor = libdeflate_alloc_decompressor();
		if (!deflater->decompressor)
			return smalti_fail(error, SMALTI_ENOMEM, "out of memory to inflate");
		shuffled = deflater->shuffled.bytes;
		if (libdeflate_zlib_decompress(deflater->decompressor, deflated->data,
					       (size_t)deflated->bytes, deflater->shuffled.bytes,
					       (size_t)bytes, NULL))
			return smalti_fail(error, SMALTI_ECORRUPT, "a compressed piece cannot be inflated");
	}
	if (bytes > 0)
		shuffle(shuffled, bytes, size, true, values);
	return 0;
}
