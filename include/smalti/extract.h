/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <smalti/features.h>
#include <smalti/generate.h>
#include <smalti/model.h>

/** @file
 * Extracts the features of a data set, captions with T5 and images with the VAE's encoder, into a directory
 * of shards. The directory holds the whole state: a run continues where another ended, for whatever reason,
 * and any number of processes can share the work.
 */

SMALTI_BEGIN_DECLS

/** How an image is resized to its bin. */
enum smalti_fitting {
	SMALTI_FITTING_COVER,  /**< scale until the image covers the bin, then crop: as in training */
	SMALTI_FITTING_STRETCH /**< scale width and height separately, as PixArt's tool does */
};

enum smalti_compression {
	SMALTI_COMPRESS_AUTO, /**< compress if that saves a fifth on the first rows of a shard */
	SMALTI_COMPRESS_NEVER,
	SMALTI_COMPRESS_ALWAYS
};

enum {
	/** So many items that a shard is of a sensible size (docs/extract.md). The process that makes the
	 * directory decides, for all who go on in it. */
	SMALTI_SHARD_ITEMS_AUTO = -1
};

/** What to extract, and how. Strings are the caller's until the end of smalti_extract(). */
struct smalti_extract_options {
	/** A list of items, a directory of images or tar files, or one or more tar files; "-" is the standard
	 * input, and braces name several files. Lists and tar files may be compressed by gzip. See
	 * docs/datasets.md. @{ */
	const char *const *inputs;
	int64_t input_count;
	/** @} */
	const char *output;     /**< directory of features; created, or resumed */
	const char *image_root; /**< what the list's paths are relative to; NULL: see docs/datasets.md */
	bool text, images;      /**< which features to extract; at least one of them */
	int caption_count;      /**< 0: the first of txt, prompt, caption and text that is found */
	const char *captions[SMALTI_FEATURES_CAPTIONS_MAX]; /**< the captions' keys */
	enum smalti_cleaning cleaning;
	int64_t max_tokens; /**< captions are truncated to so many; 0: the pipeline's */
	int64_t image_size; /**< resolution of the bins: 256, 512, 1024, 2048 or 2880 */
	enum smalti_fitting fit;
	bool stored_orientation; /**< ignore the EXIF orientation, as PixArt's tool does */
	enum smalti_features_type type;
	enum smalti_compression compression;
	int64_t first, end;  /**< items of the list; end 0: its end */
	int64_t part, parts; /**< extract only part `part` of `parts` equal parts of these; parts 0: all */
	int64_t shard_items; /**< items in a shard; 0: 1024, or by shard_bytes; SMALTI_SHARD_ITEMS_AUTO */
	int64_t shard_bytes; /**< approximate size of a shard, estimated from the first items; 0: not given */
	int64_t lease_seconds; /**< time after which others may take over the work of an inactive process; 0:
				  300 */
	/** Bytes per second that this process reads of images, and writes to shards, at most, for storage
	 * that others share; 0: no limit. Both end when the callback asks to stop. @{ */
	int64_t read_limit, write_limit;
	/** @} */
	bool retry_failed;    /**< retry items that failed */
	bool append;          /**< add the items that the list has behind those of the directory */
	bool allow_mixed_isa; /**< allow another instruction set than the directory's, which rounds
				 differently */
	struct smalti_model_options model; /**< only its tokenizer, text_encoder and vae are used */
};

void smalti_extract_defaults(struct smalti_extract_options *options);

/** Progress of an extraction. */
struct smalti_extract_progress {
	int64_t items;  /**< number of items in the range of this process */
	int64_t done;   /**< items of these that any process has done, with failed ones; those of this run
			   may be a window ahead of the disk */
	int64_t made;   /**< items that this run has done */
	int64_t failed; /**< items of these that lack some or all features */
	int64_t captions, tokens, images;  /**< that this run has encoded */
	int64_t read_bytes, written_bytes; /**< of images' files that this run has read, of shards that it has
					      written */
	/** What is computed together, and by which memory: zeros until that is known. @{ */
	int64_t pack_tokens; /**< tokens of captions that are computed together, at most; 0: no captions */
	int64_t pack_images; /**< images that are encoded at a time, if they are square; 0: no images */
	int64_t shard_items; /**< items in a shard */
	int64_t memory;      /**< bytes that all of it may take, beside the weights */
	char memory_of[64];  /**< whose they are: "main memory", or a device's name */
	/** @} */
	double listed;           /**< fraction of the list that was read, before anything else is done */
	const char *waiting_for; /**< the process that works on what is left; NULL: not waiting */
	const char *locked_by;   /**< the process that holds the lock on the directory; NULL: not waiting */
	double locked;           /**< seconds for which this run has waited for the lock */
	const char *note;        /**< a line about parts of the data set that are not read; NULL: none */
	int64_t passed_over;     /**< images and captions among these parts */
	const char *unused;      /**< a line about tensors of the model that are not used; NULL: none */
};

/** What the progress callback asks for. */
enum smalti_extract_action {
	SMALTI_EXTRACT_CONTINUE,
	SMALTI_EXTRACT_FINISH, /**< start nothing new; complete and commit the work in progress */
	SMALTI_EXTRACT_DROP    /**< commit completed work, drop the rest */
};

/** Progress callback, called several times per second on the calling thread. A request to stop cannot be
 * withdrawn. */
typedef enum smalti_extract_action smalti_extract_callback(void *user,
							   const struct smalti_extract_progress *progress);

struct smalti_extract_result {
	struct smalti_extract_progress progress;
	bool stopped;                /**< stopped by the callback, possibly before everything was done */
	int64_t failures;            /**< failures of the whole range, of this run and others */
	char first_passed_over[256]; /**< the name of one of progress.passed_over; "": there is none */
	struct smalti_error log;     /**< why the run's log lacks lines; SMALTI_OK: it has all */
};

/** Extracts the features; returns when the whole range is committed, by any process, or the callback has
 * ended it. Items that fail do not end it; they are recorded with their reasons. -1 with SMALTI_EINVAL
 * (options; another run's directory), SMALTI_EIO, SMALTI_EFORMAT, SMALTI_ENOMEM, …: what was committed stays;
 * SMALTI_ECANCELLED: ended by the callback before it could begin or complete. One at a time in a session. */
int smalti_extract(struct smalti_session *session, const struct smalti_extract_options *options,
		   smalti_extract_callback *on_progress, void *user, struct smalti_extract_result *result,
		   struct smalti_error *error);

SMALTI_END_DECLS
