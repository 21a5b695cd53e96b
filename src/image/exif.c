/* SPDX-License-Identifier: Apache-2.0 */
#include "image/exif.h"

#include <stdbool.h>
#include <string.h>

enum { TAG_ORIENTATION = 0x112, TYPE_SHORT = 3, HEADER_BYTES = 8, ENTRY_BYTES = 12 };

struct tiff {
	const uint8_t *bytes;
	int64_t size;
	bool big_endian;
};

/* An unsigned integer of 2 or 4 bytes; 0 behind the end. */
static int64_t get(const struct tiff *tiff, int64_t at, int length)
{
	int64_t value = 0;
	if (at > tiff->size - length)
		return 0;
	for (int i = 0; i < length; i++)
		value = value << 8 | tiff->bytes[at + (tiff->big_endian ? i : length - 1 - i)];
	return value;
}

int smalti_exif_orientation(const uint8_t *bytes, int64_t size)
{
	static const char prefix[] = "Exif\0";
	const int64_t skipped = size >= 6 && memcmp(bytes, prefix, 6) == 0 ? 6 : 0;
	struct tiff tiff = {bytes + skipped, size - skipped, false};
	if (tiff.size < HEADER_BYTES ||
	    (memcmp(tiff.bytes, "II*\0", 4) != 0 && memcmp(tiff.bytes, "MM\0*", 4) != 0))
		return 0;
	tiff.big_endian = tiff.bytes[0] == 'M';
	const int64_t directory = get(&tiff, 4, 4), entries = get(&tiff, directory, 2);
	for (int64_t i = 0; i < entries; i++) {
		const int64_t entry = directory + 2 + i * ENTRY_BYTES;
		if (get(&tiff, entry, 2) != TAG_ORIENTATION)
			continue;
		const int64_t value = get(&tiff, entry + 8, 2);
		return get(&tiff, entry + 2, 2) == TYPE_SHORT && value <= 8 ? (int)value : 0;
	}
	return 0;
}
