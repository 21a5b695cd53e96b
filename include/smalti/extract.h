/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXTRACT_H
#define SMALTI_EXTRACT_H

#include <smalti/features.h>
#include <smalti/generate.h>
#include <smalti/model.h>

/** @file
 * Extracts the features of a data set, captions with T5 and images with the VAE's encoder, into a directory
 * of shards. The directory holds the whole state: a run continues where another ended, for whatever reason,
 * and any number of processes can share the work.
 */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

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

/** What to extract, and how. Strings are the caller's until the end of smalti_extract(). */
struct smalti_extract_options {
	/** List of items, directory of images or tars, tar, or several tars; "-" is the standard input,
	 * braces stand for several. Lists and tars may be compressed by gzip: docs/datasets.md. @{ */
	const char *const *inputs;
	int64_t input_count;
	/** @} */
	const char *output;     /**< directory of features; made, or resumed */
	const char *image_root; /**< what the list's paths are relative to; NULL: see docs/datasets.md */
	bool text, images;      /**< which features; at least one */
	int caption_count;      /**< 0: the first of txt, prompt, caption and text that is found */
	const char *captions[SMALTI_FEATURES_CAPTIONS_MAX]; /**< the captions' keys */
	enum smalti_cleaning cleaning;
	int64_t max_tokens; /**< captions are truncated to so many; 0: the pipeline's */
	int64_t image_size; /**< whose bins: 256, 512, 1024, 2048 or 2880 */
	enum smalti_fitting fit;
	bool stored_orientation; /**< images as they are stored, whatever EXIF says: as the reference */
	enum smalti_features_type type;
	enum smalti_compression compression;
	int64_t first, end;  /**< items of the list; end 0: its end */
	int64_t part, parts; /**< of these, part `part` of `parts` even ones; parts 0: all */
	int64_t shard_items; /**< items in a shard; 0: 1024, or by shard_bytes */
	int64_t shard_bytes; /**< about the bytes of a shard, from what the first items take; 0: no matter */
	int64_t
	    lease_seconds; /**< after which others may take over the work of an inactive process; 0: 300 */
	bool retry_failed; /**< items that failed are tried again */
	bool append; /**< the list may have more items than the directory's, behind those: they are added */
	bool allow_mixed_isa; /**< rows by another instruction set than the directory's, which rounds
				 otherwise */
	struct smalti_model_options model; /**< tokenizer, text_encoder and vae are read of it */
};

void smalti_extract_defaults(struct smalti_extract_options *options);

/** Progress of an extraction. */
struct smalti_extract_progress {
	int64_t items;  /**< to be done in all, of this process's range */
	int64_t done;   /**< by whomever, with those that failed; those of this run at most a window ahead of
			   the disk */
	int64_t made;   /**< by this run */
	int64_t failed; /**< of those: items that lack some or all features */
	int64_t captions, tokens, images; /**< made by this run */
	double listed;           /**< share of the list that was read, before anything else is done */
	const char *waiting_for; /**< NULL, or who holds what is left */
	const char *locked_by;   /**< NULL, or who changes the directory, and lets nobody else do so, */
	double locked;           /**< for which the calling thread has waited for so many seconds */
	const char *note;        /**< NULL, or a line on what the data set has that is not read */
	const char *unused;      /**< NULL, or a line on tensors of the model's files that are not used */
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
	bool stopped;     /**< stopped by the callback, possibly before everything was done */
	int64_t failures; /**< in all of the range, of this run and others */
};

/** Extracts the features; returns when the whole range is committed, by any process, or the callback has
 * ended it. Items that fail do not end it; they are recorded with their reasons. -1 with SMALTI_EINVAL
 * (options; another run's directory), SMALTI_EIO, SMALTI_EFORMAT, SMALTI_ENOMEM, …: what was committed stays;
 * SMALTI_ECANCELLED: ended by the callback before it could begin or complete. One at a time in a session. */
int smalti_extract(struct smalti_session *session, const struct smalti_extract_options *options,
		   smalti_extract_callback *on_progress, void *user, struct smalti_extract_result *result,
		   struct smalti_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
