/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A data set with every kind of bad item, and good items that only look bad. */

struct bad_item {
	const char *key;
	const char *stage; /* at which it fails, as failed.jsonl names it; NULL: nowhere */
	const char *words; /* parts of its reason */
	/* The image: a file under tests/data of which the first `bytes` (0: all) are copied to `key`, or the
	 * result of write_image(); NULL: none is written. */
	const char *image;
	long bytes;
	/* The entry of the list; NULL: the key and a short prompt. "LONG" in it is a megabyte of text. */
	const char *entry;
};

enum { BAD_ITEMS = 25, BAD_LONG = 1 << 20 };
extern const struct bad_item bad_items[BAD_ITEMS];

/* Writes DIRECTORY/InternImgs, DIRECTORY/InternData/data_info.json, and DIRECTORY/failed: index, stage and
 * key of each item that fails, one per line, separated by tabs. */
void bad_dataset_write(const char *directory);
