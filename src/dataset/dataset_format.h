/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/byte_reader.h"
#include "base/json.h"
#include "dataset/dataset.h"

/* Streams that are kept one behind the other in a file without a name in smalti_temporary_directory(), so
 * that they can be read again, and anywhere. */
struct smalti_spool {
	int file;             /* -1: nothing is kept yet */
	char path[32];        /* by which this process can open it */
	int64_t first, bytes; /* where the last stream begins: at a multiple of 512 bytes; where it ends */
	int64_t limit;        /* of all bytes; 0, to begin with: half of what is free there */
};

bool smalti_is_gzip(const void *start, size_t length);

/* Keeps a stream to its end: decompressed, if it is gzip's (each member of it, with zeros behind the last). A
 * damaged one, or one that is cut short, is SMALTI_EFORMAT; more than the limit SMALTI_EUNSUPPORTED.
 * `on_progress` (may be NULL) is called some times a second with 0; false ends it (ECANCELLED). Failed or
 * not, the caller closes the file. */
int smalti_spool_add(struct smalti_spool *spool, int from, const char *name,
		     bool (*on_progress)(void *user, double share), void *user, struct smalti_error *error);

/* What a data set is read from. */

/* One of several tars. */
struct smalti_dataset_tar_file {
	char *path;
	char *prefix;         /* of its items' keys: what tells it from the others */
	int64_t start, bytes; /* of its bytes among those of all */
	bool spooled;         /* it was compressed: */
	int64_t first;        /* it begins there in the spool */
};

/* Images and captions that are passed over. */
struct smalti_passed_over {
	int64_t count;
	char first[256]; /* the name of one */
};
/* Makes a name of any bytes one that can be shown. */
void smalti_dataset_show(char *text);
void smalti_pass_over(struct smalti_passed_over *passed, int64_t count, const char *name);

struct smalti_dataset_source {
	const struct smalti_dataset_options *options; /* those of the captions and images */
	char *name;                                   /* for messages */
	char *path;    /* of the file or directory; of several tars: of the first one */
	int file;      /* -1: a directory, or several tars */
	int64_t first; /* where it begins in the file */
	FILE *list;    /* of a directory: what it holds */
	struct smalti_dataset_tar_file *tars; /* several, or those of a directory; else NULL */
	int64_t tar_count;
	int64_t size;              /* where it ends in the file; of the directory's list, all tars */
	struct smalti_spool spool; /* the standard input, or what was compressed */
	char note[1024];           /* what is passed over, or "" */
	struct smalti_passed_over passed;
};

/* Expands braces, keeps the standard input, decompresses, lists a directory. */
int smalti_dataset_source_open(struct smalti_dataset_source *source, const char *const *paths, int64_t count,
			       struct smalti_error *error);
/* Fails with `code`: among several data sets this one is no tar. */
int smalti_dataset_refuse_mixture(const char *path, enum smalti_code code, struct smalti_error *error);
/* Lists a directory again, since other captions are asked for. */
int smalti_dataset_source_list(struct smalti_dataset_source *source, struct smalti_error *error);
/* Returns the directory that relative paths of images are below: `image_root`, or where PixArt or the user
 * has them. What is no `list` has its images in it. For free(); NULL with an error. */
char *smalti_dataset_source_images(const struct smalti_dataset_source *source, bool list,
				   const char *image_root, struct smalti_error *error);
void smalti_dataset_source_close(struct smalti_dataset_source *source);

/* What a format gives to dataset.c: a file dataset_FORMAT.c each (JSON Lines: dataset_text.c). */

/* An entry or caption of more bytes is refused. */
enum { SMALTI_ITEM_LIMIT = 64 << 20 };

/* Where an item begins. */
struct smalti_dataset_place {
	int64_t offset; /* in the file */
	int64_t line;   /* of a list of lines, from 1 */
};

/* What a format finds of an item; texts are its own until its next call, or the entry's. */
struct smalti_dataset_entry {
	char *texts[SMALTI_DATASET_CAPTIONS_MAX]; /* what belongs to the entry */
	cJSON *object;
	struct smalti_caption_text path; /* of the image: the key */
	struct smalti_caption_text id;   /* the key where no image is named */
	struct smalti_caption_text captions[SMALTI_DATASET_CAPTIONS_MAX];
	const char *file; /* NULL: the image is a file; else it lies in this one, here: */
	int64_t offset, bytes;
	char found[256];                  /* the names of what there is of it, or "" */
	uint64_t group;                   /* hash of the name that its neighbouring parts share; 0: none */
	const char *stem;                 /* this name */
	struct smalti_passed_over passed; /* of it, or in front of it; also at the end */
	char problems[2 + SMALTI_DATASET_CAPTIONS_MAX][256]; /* what their `problem` may point to */
};

struct smalti_dataset_format {
	/* Returns the state, at the first item; NULL with an error. */
	void *(*open)(const struct smalti_dataset_source *source, struct smalti_error *error);
	void (*close)(void *state);
	struct smalti_dataset_place (*tell)(const void *state);
	void (*seek)(void *state, const struct smalti_dataset_place *place);
	/* Finds the next item, `entry` all zeros before. Without `texts` captions need not be looked for. A
	 * bad item may have a path or id. */
	enum smalti_dataset_status (*next)(void *state, bool texts, struct smalti_dataset_entry *entry,
					   struct smalti_error *error);
};

extern const struct smalti_dataset_format smalti_dataset_json, smalti_dataset_lines, smalti_dataset_csv,
    smalti_dataset_directory, smalti_dataset_tar, smalti_dataset_tars;

/* Returns the source's format; NULL with an error. */
const struct smalti_dataset_format *smalti_dataset_recognise(const struct smalti_dataset_source *source,
							     struct smalti_error *error);

/* Returns the status of a failure: after SMALTI_EFORMAT and SMALTI_EUNSUPPORTED reading goes on. */
enum smalti_dataset_status smalti_dataset_failure(const struct smalti_error *error);

/* Names that lists have for an image's path, the best first, and for an item's id; NULL-terminated. */
extern const char *const smalti_dataset_path_names[], *const smalti_dataset_id_names[];

/* Reads the fields of an object of a list. Bytes that are not UTF-8 spoil only the strings that they are
 * in. */
int smalti_dataset_parse(const char *text, size_t length, const struct smalti_dataset_options *options,
			 struct smalti_dataset_entry *entry, struct smalti_error *error);

/* Sets caption number `i` to `text`, which becomes the entry's. If that is NULL, there is none, or it could
 * not be read and `error` says why. */
void smalti_dataset_set_caption(struct smalti_dataset_entry *entry, int i, char *text, size_t length,
				const struct smalti_error *error);

/* Reads the captions that are not there yet from an object in a file of its own. `text` NULL: it could not be
 * read, and `error` says why. */
void smalti_dataset_parse_captions(const char *text, size_t length,
				   const struct smalti_dataset_options *options,
				   struct smalti_dataset_entry *entry, struct smalti_error *error);

/* Frees what belongs to the entry, and empties it. */
void smalti_dataset_forget(struct smalti_dataset_entry *entry);

/* Returns the length of a name without its ending of these (NULL-terminated), in any case and perhaps with
 * .gz behind; of all of it if it has none. */
size_t smalti_dataset_stem(const char *name, const char *const *endings);
extern const char *const smalti_dataset_tar_endings[];
/* Tells whether a file that begins so holds an image that can be read; SMALTI_IMAGE_START bytes are
 * enough. */
enum { SMALTI_IMAGE_START = 12 };
bool smalti_dataset_begins_image(const char *start, size_t length);
/* Tell whether a name ends like that of an image that is read, or of a tar. */
bool smalti_dataset_is_image(const char *name);
bool smalti_dataset_is_tar(const char *name);
/* Endings of images that are not read, ended by NULL; returns the number of the name's, or -1. */
extern const char *const smalti_dataset_unread_extensions[];
int smalti_dataset_unread_image(const char *name);
/* Returns the number of the caption whose key is the extension (without dot), or -1. */
int smalti_dataset_caption_of(const struct smalti_dataset_options *options, const char *extension);

/* The beginning of the state of a format that reads its list as a text. */
struct smalti_dataset_text {
	const struct smalti_dataset_source *source;
	const struct smalti_dataset_options *options;
	int64_t line; /* that comes next, from 1, if the format counts them */
	struct smalti_byte_reader reader;
};

/* Makes a state of so many bytes, zeros but for the text at its front, which is at the first byte of the
 * source's file. */
void *smalti_dataset_text_open(const struct smalti_dataset_source *source, int64_t bytes,
			       struct smalti_error *error);
/* For the tables of formats; `new` is of those whose state is the text alone. Closing frees the state. */
void *smalti_dataset_text_new(const struct smalti_dataset_source *source, struct smalti_error *error);
void smalti_dataset_text_close(void *state);
struct smalti_dataset_place smalti_dataset_text_tell(const void *state);
void smalti_dataset_text_seek(void *state, const struct smalti_dataset_place *place);

/* What a directory holds for a data set, in a list: of each item a byte that says what it is, its path below
 * the directory, a NUL. */
enum { SMALTI_WALK_IMAGE = 'p', SMALTI_WALK_TEXT = 't', SMALTI_WALK_TAR = 'a' };

enum { SMALTI_WALK_UNREAD = 16 };
struct smalti_walk_counts {
	int64_t images, texts, tars;
	int64_t captions;                   /* those texts that are no JSON */
	int64_t unread[SMALTI_WALK_UNREAD]; /* images of formats that are not read, by their extension */
	int64_t misnamed;                   /* images that can be read, under other names */
	struct smalti_passed_over passed;   /* both, and the tars where they are passed over */
};

/* Lists images, tars, and, if images are not asked for, captions without one, whose path is without the
 * extension; in the bytewise order of the names, directory by directory. Names that begin with a dot are
 * passed over, as is a directory that was already there under another name. */
int smalti_dataset_walk(const char *directory, const struct smalti_dataset_options *options, FILE *list,
			struct smalti_walk_counts *counts, struct smalti_error *error);

/* Tells whether the data set is made of the tars; else of images and captions. */
bool smalti_walk_is_of_tars(const struct smalti_walk_counts *counts);
/* Writes one line on what is not read, "" if there is nothing. */
void smalti_walk_note(const struct smalti_walk_counts *counts, char *note, size_t size);

/* Expands a pattern, in order, as a shell and webdataset do: {00000..00009} are numbers (with as many digits,
 * if one begins with a 0), {a,b} are texts; several braces are all combinations, the last one the fastest.
 * Other braces are themselves. `each` gets each name, for free(), and returns -1 with an error to end it. At
 * most `limit` names. */
int smalti_braces_expand(const char *pattern, int64_t limit,
			 int (*each)(void *user, char *name, struct smalti_error *error), void *user,
			 struct smalti_error *error);
