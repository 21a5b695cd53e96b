/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/tar.h"
#include "base/utf8.h"
#include "dataset/dataset_format.h"

#define EXPECTED                                                                                             \
	"expected a PixArt data_info.json, JSON Lines, CSV or TSV with a header, a directory of images or "  \
	"tars, or a tar, as it is or compressed by gzip"

enum { START_BYTES = 4096 };

/* Files that are known by their first bytes, and what the user can do about them. */
static const struct foreign {
	const char *name, *remedy;
	size_t length;
	const char *bytes;
} foreign[] = {
    {"compressed by gzip, and what it holds again", "decompress it: gunzip", 2, "\x1f\x8b"},
    {"compressed by Zstandard", "decompress it: unzstd", 4, "\x28\xb5\x2f\xfd"},
    {"compressed by xz", "decompress it: unxz", 5, "\xfd\x37zXZ"},
    {"compressed by bzip2", "decompress it: bunzip2", 3, "BZh"},
    {"a ZIP archive", "unpack it, and name the directory", 4, "PK\3\4"},
    {"a Parquet file", "convert it with python/parquet_to_jsonl.py", 4, "PAR1"},
    {"an HDF5 file", "convert it to JSON Lines", 4, "\x89HDF"},
    {"a JPEG image", "name the directory that it is in", 3, "\xff\xd8\xff"},
    {"a PNG image", "name the directory that it is in", 4, "\x89PNG"},
    {"text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8", 2, "\xff\xfe"},
    {"text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8", 2, "\xfe\xff"},
};

static int refuse_foreign(const char *path, const char *start, size_t length, struct smalti_error *error)
{
	for (size_t i = 0; i < COUNT_OF(foreign); i++) {
		const struct foreign *f = &foreign[i];
		if (f->length <= length && memcmp(start, f->bytes, f->length) == 0)
			return smalti_fail(error, SMALTI_EUNSUPPORTED, "%s: " EXPECTED "; this is %s: %s",
					   path, f->name, f->remedy);
	}
	return 0;
}

/* Recognises a text by the first byte that is no blank, else by name. */
static const struct smalti_dataset_format *recognise_text(const char *path, const char *start, size_t length,
							  struct smalti_error *error)
{
	static const char *const lines[] = {".jsonl", ".ndjson", NULL}, *const tables[] = {".csv", ".tsv",
											   NULL};
	size_t at = smalti_utf8_mark(start, length);
	while (at < length && strchr(" \t\r\n", start[at]) && start[at])
		at++;
	if (at < length && start[at] == '[')
		return &smalti_dataset_json;
	if ((at < length && start[at] == '{') || path[smalti_dataset_stem(path, lines)])
		return &smalti_dataset_lines;
	if (path[smalti_dataset_stem(path, tables)])
		return &smalti_dataset_csv;
	const char *line_end = memchr(start, '\n', length);
	const size_t line = line_end ? (size_t)(line_end - start) : length;
	if (!memchr(start, '\0', length) && (memchr(start, ',', line) || memchr(start, '\t', line)))
		return &smalti_dataset_csv;
	smalti_fail(error, SMALTI_EFORMAT, "%s: " EXPECTED "; %s", path,
		    at < length ? "this is none of them" : "nothing is in it");
	return NULL;
}

const struct smalti_dataset_format *smalti_dataset_recognise(const struct smalti_dataset_source *source,
							     struct smalti_error *error)
{
	const char *path = source->name;
	char start[START_BYTES];
	if (source->file < 0)
		return source->tars ? &smalti_dataset_tars : &smalti_dataset_directory;
	const int64_t bytes = source->size - source->first;
	const ssize_t length =
	    pread(source->file, start, bytes < START_BYTES ? (size_t)bytes : START_BYTES, source->first);
	if (length < 0) {
		smalti_fail_errno(error, "%s: cannot be read", path);
		return NULL;
	}
	if (refuse_foreign(path, start, (size_t)length, error) < 0)
		return NULL;
	if (smalti_dataset_is_tar(path) ||
	    (length >= SMALTI_TAR_BLOCK && smalti_tar_is_header((const struct smalti_tar_header *)start)))
		return &smalti_dataset_tar;
	return recognise_text(path, start, (size_t)length, error);
}
