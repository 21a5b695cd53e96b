/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* The items of a data set, images and their captions, in the order of its list: a PixArt data_info.json (an
 * array of objects), JSON Lines, CSV or TSV with a header, a directory of images with captions beside them
 * (STEM.txt, STEM.json), or a webdataset: a tar, several of them, or a directory of them. Files may be
 * compressed by gzip. Memory does not grow with the number of items, but for 16 bytes an item in which equal
 * keys are found, and as many for the stems of a tar. */
struct smalti_dataset;

enum { SMALTI_DATASET_CAPTIONS_MAX = 8 };

/* Keys that captions are found under where none is asked for, the best first; then the keys in words. */
enum { SMALTI_CAPTION_NAME_COUNT = 4 };
extern const char *const smalti_dataset_caption_names[SMALTI_CAPTION_NAME_COUNT];
#define SMALTI_CAPTION_NAMES "txt, prompt, caption or text"

struct smalti_dataset_options {
	/* Of the list, directory or tar, or of several tars, in their order; "-" is the standard input, which
	 * is kept in a file without a name, as is what is compressed. Braces of names that do not exist stand
	 * for several: {00000..00009}.tar, {a,b}.tar. */
	const char *const *paths;
	int64_t path_count;
	const char *image_root; /* directory that the list's paths are relative to; NULL: for a list in a
			       directory InternData the InternImgs beside it (docs/reference.md 6.2), else the
			       list's own directory */
	const char *captions[SMALTI_DATASET_CAPTIONS_MAX]; /* keys, in order */
	int caption_count;
	/* Without keys: the first of smalti_dataset_caption_names that an item near the list's beginning has.
	 * Else 0 keys are no captions. */
	bool find_caption;
	bool images;    /* whether they are looked for */
	int64_t prefix; /* so many first items have digests of their own; 0: none */
	/* NULL, or told now and then which share of the list was read; false ends the opening
	 * (ECANCELLED). */
	bool (*on_progress)(void *user, double share);
	void *user;
};

/* The place of an image's bytes while the data set is open: a whole file, or a part of one (of a tar). */
struct smalti_image_source {
	const char *path;
	int64_t offset, bytes; /* bytes -1: all of the file */
};

struct smalti_caption_text {
	const char *text; /* NULL: there is none under this key. Any bytes: not checked for UTF-8 */
	size_t length;
	const char *problem; /* NULL, or why there is no text: `text` is NULL ("caption: expected a string,
				found 3") */
};

/* One item; pointers until the next call. */
struct smalti_dataset_record {
	int64_t index;   /* in the list, from 0 */
	const char *key; /* full relative path of the image (in one of several tars: behind the tar's name
			    and a slash), else what the list calls the item ("id"), else
			    its index in 9 digits. Valid UTF-8, never NULL, at most SMALTI_KEY_BYTES long */
	struct smalti_caption_text captions[SMALTI_DATASET_CAPTIONS_MAX];
	struct smalti_image_source image; /* path NULL: none was named */
	/* For the reason of a caption or image that is missing: the names of what the item has, of a tar's
	 * member or a JSON object; NULL where that is not known. */
	const char *found;
	const char *split; /* NULL, or the stem of members in a tar that are in more places than one */
};

enum { SMALTI_KEY_BYTES = 4096 };

enum smalti_dataset_status {
	SMALTI_DATASET_FAILED = -1, /* the list cannot be read on */
	SMALTI_DATASET_END = 0,
	SMALTI_DATASET_RECORD = 1,
	/* This item is wrong (`error` says why; give an empty one each time): its entry cannot be read, or
	 * its key was there before. record->index and ->key are set. */
	SMALTI_DATASET_BAD = 2,
};

/* Reads the list once: counts, remembers where to go on at every some items, and finds keys that are there
 * twice. */
struct smalti_dataset *smalti_dataset_open(const struct smalti_dataset_options *options,
					   struct smalti_error *error);
void smalti_dataset_close(struct smalti_dataset *dataset); /* NULL is fine */

/* XXH3 in order over the keys, and over the captions that the list itself holds: tells lists apart. Captions
 * in files beside it, and in tars, are not read for it. */
struct smalti_dataset_digests {
	int64_t items;
	uint64_t keys, captions;
};

struct smalti_dataset_info {
	const char *name;              /* for messages */
	const char *note;              /* NULL, or a line on what is passed over: */
	int64_t passed_over;           /* so many images and captions of a directory or tar, */
	const char *first_passed_over; /* and the first one's name */
	const char *const *captions;   /* the keys of captions, as they were given or found */
	int caption_count;
	int64_t count;
	struct smalti_dataset_digests digests;
	struct smalti_dataset_digests prefix; /* of options.prefix items; of none: there are fewer, or none
						 were asked for */
};
const struct smalti_dataset_info *smalti_dataset_info(const struct smalti_dataset *dataset);

/* Makes the next call read item `index`, 0 … count. */
int smalti_dataset_seek(struct smalti_dataset *dataset, int64_t index, struct smalti_error *error);
enum smalti_dataset_status smalti_dataset_next(struct smalti_dataset *dataset,
					       struct smalti_dataset_record *record,
					       struct smalti_error *error);
