/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "image/image_decoder.h"

#include <ctype.h>

enum { SIGNATURE_BYTES = 12 };

/* How files begin; those without a decoder are known by name only. */
static const struct signature {
	const char *name;
	size_t offset, length;
	const char *bytes;
	const struct smalti_image_decoder *decoder;
} signatures[] = {
    {"JPEG", 0, 3, "\xff\xd8\xff", &smalti_jpeg_decoder},
    {"PNG", 0, 8, "\x89PNG\r\n\x1a\n", &smalti_png_decoder},
    {"WebP", 8, 4, "WEBP", &smalti_webp_decoder},
    {"GIF", 0, 4, "GIF8", NULL},
    {"TIFF", 0, 4, "II*\0", NULL},
    {"TIFF", 0, 4, "MM\0*", NULL},
    {"BMP", 0, 2, "BM", NULL},
    {"AVIF or HEIF", 4, 4, "ftyp", NULL},
    {"JPEG 2000", 4, 4, "jP  ", NULL},
    {"JPEG XL", 4, 4, "JXL ", NULL},
    {"JPEG XL", 0, 2, "\xff\x0a", NULL},
    {"PPM", 0, 2, "P6", NULL},
};

static const struct signature *recognise(const char *start, size_t length)
{
	for (size_t i = 0; i < COUNT_OF(signatures); i++) {
		const struct signature *s = &signatures[i];
		if (s->offset + s->length <= length && memcmp(start + s->offset, s->bytes, s->length) == 0)
			return s;
	}
	return NULL;
}

static int choose_decoder(struct smalti_image_reader *image, struct smalti_error *error)
{
	char start[SIGNATURE_BYTES];
	struct smalti_byte_source source = image->source; /* whose place stays */
	const size_t length = (size_t)smalti_byte_source_read(&source, start, sizeof(start));
	if (source.file && (smalti_byte_source_failed(&source) || fseek(source.file, 0, SEEK_SET) != 0))
		return smalti_fail_errno(error, "%s: cannot be read", image->path);
	const struct signature *signature = recognise(start, length);
	if (!signature)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "%s: a JPEG, PNG or WebP file was expected, this %s", image->path,
				   length ? "is none of them" : "file is empty");
	if (!signature->decoder)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s: a %s file cannot be read; convert it to JPEG, PNG or WebP",
				   image->path, signature->name);
	image->info.format = signature->name;
	image->decoder = signature->decoder;
	image->state = smalti_calloc(1, image->decoder->state_bytes, error);
	return image->state ? 0 : -1;
}

int smalti_image_admit(struct smalti_image_reader *image, int64_t width, int64_t height,
		       struct smalti_error *error)
{
	int64_t pixels = width;
	if (!smalti_multiply(&pixels, height) || pixels < 1 || pixels > image->limits.pixels)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s: an image of 1 to %" PRId64 " pixels was expected, found %" PRId64
				   "x%" PRId64 "; scale it down, or allow more",
				   image->path, image->limits.pixels, width, height);
	image->info.width = width;
	image->info.height = height;
	return 0;
}

int smalti_image_hold(const struct smalti_image_reader *image, const char *kind, int64_t bytes,
		      struct smalti_error *error)
{
	if (bytes <= image->limits.bytes)
		return 0;
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "%s: %s has to be held whole: %" PRId64 " bytes, at most %" PRId64
			   " are allowed; allow more, or convert it to a PNG without interlacing",
			   image->path, kind, bytes, image->limits.bytes);
}

/* Takes the stream over, if there is one. */
static struct smalti_image_reader *open_image(const char *name, struct smalti_byte_source source,
					      int64_t bytes, const struct smalti_image_limits *limits,
					      struct smalti_error *error)
{
	struct smalti_image_reader *image = smalti_calloc(1, sizeof(*image), error);
	if (!image) {
		if (source.file)
			fclose(source.file);
		return NULL;
	}
	image->limits = *limits;
	image->source = source;
	image->file_bytes = bytes;
	image->path = smalti_format(error, "%s", name);
	if (image->path && choose_decoder(image, error) == 0 && image->decoder->open(image, error) == 0) {
		image->info.orientation = (int)smalti_max(image->info.orientation, 1);
		return image;
	}
	smalti_image_close(image);
	return NULL;
}

struct smalti_image_reader *smalti_image_open(const char *path, const struct smalti_image_limits *limits,
					      struct smalti_error *error)
{
	int64_t bytes = 0;
	FILE *file = smalti_open_stream(path, &bytes, error);
	return file ? open_image(path, (struct smalti_byte_source){.file = file}, bytes, limits, error)
		    : NULL;
}

struct smalti_image_reader *smalti_image_open_memory(const char *name, const void *data, int64_t bytes,
						     const struct smalti_image_limits *limits,
						     struct smalti_error *error)
{
	return open_image(name, (struct smalti_byte_source){.data = data, .left = bytes}, bytes, limits,
			  error);
}

const struct smalti_image_info *smalti_image_info(const struct smalti_image_reader *image)
{
	return &image->info;
}

int smalti_image_read_rows(struct smalti_image_reader *image, int64_t first, int64_t count, uint8_t *rows,
			   struct smalti_error *error)
{
	if (image->failed || first != image->next || count < 0 || count > image->info.height - first)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: rows %" PRId64 " to %" PRId64 " of %" PRId64
				   " were asked for where %s %" PRId64 " was expected",
				   image->path, first, first + count - 1, image->info.height,
				   image->failed ? "nothing after the failure at row" : "row", image->next);
	if (count == 0)
		return 0;
	image->failed = image->decoder->read_rows(image, count, rows, error) < 0;
	if (image->failed)
		return -1;
	image->next += count;
	return 0;
}

void smalti_image_close(struct smalti_image_reader *image)
{
	if (!image)
		return;
	if (image->state)
		image->decoder->close(image->state);
	free(image->state);
	if (image->source.file)
		fclose(image->source.file);
	free(image->path);
	free(image);
}

int64_t smalti_byte_source_read(struct smalti_byte_source *source, void *to, int64_t bytes)
{
	if (source->file)
		return (int64_t)fread(to, 1, (size_t)bytes, source->file);
	const int64_t got = bytes < source->left ? bytes : source->left;
	if (got > 0)
		memcpy(to, source->data, (size_t)got);
	source->data += got;
	source->left -= got;
	return got;
}

bool smalti_byte_source_failed(const struct smalti_byte_source *source)
{
	return source->file && ferror(source->file);
}

enum { TAG_ORIENTATION = 0x112, TYPE_SHORT = 3, HEADER_BYTES = 8, ENTRY_BYTES = 12 };

struct tiff {
	const uint8_t *bytes;
	int64_t size;
	bool big_endian;
};

/* Reads an unsigned integer of 2 or 4 bytes; 0 behind the end. */
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

int smalti_xmp_orientation(const uint8_t *bytes, int64_t size)
{
	static const char name[] = "tiff:Orientation";
	const int64_t length = (int64_t)sizeof(name) - 1;
	for (int64_t at = 0; at + length + 2 < size; at++) {
		const uint8_t *found = memmem(bytes + at, (size_t)(size - at), name, (size_t)length);
		if (!found)
			return 0;
		at = found - bytes;
		const char *value = (const char *)found + length;
		const int64_t left = size - at - length;
		const int64_t sign = left > 2 && memcmp(value, "=\"", 2) == 0 ? 2 : left > 1 && *value == '>';
		if (sign > 0 && isdigit((unsigned char)value[sign]))
			return value[sign] >= '1' && value[sign] <= '8' ? value[sign] - '0' : 0;
	}
	return 0;
}
