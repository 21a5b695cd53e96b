/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <smalti/error.h>
#include <stdbool.h>
#include <stdint.h>

/** @file
 * Exports features to the formats of PixArt's training, safetensors and webdataset. Needs no session.
 *
 * Threads: any, each with an output of its own.
 */

SMALTI_BEGIN_DECLS

enum smalti_export_format {
	/** What PixArt's multi-scale training reads: an .npz per caption, padded with
	 * zeros to the number of tokens that captions were truncated to, in float16; an .npy per image in
	 * float32. Named after the item's key as its loader does, in directories that are named after what is
	 * in them. */
	SMALTI_EXPORT_PIXART,
	/** features-NNNNNN.safetensors with tensors `t5/CAPTION/KEY` [tokens, width] and `vae/KEY`
	 * [2·channels, height, width], and features-NNNNNN.jsonl with the rest of each item. */
	SMALTI_EXPORT_SAFETENSORS,
	/** features-NNNNNN.tar with INDEX.json, INDEX.t5.npy (of a second caption INDEX.t5-2.npy) and
	 * INDEX.vae.npy per item. */
	SMALTI_EXPORT_WEBDATASET
};

/** Progress of an export. */
struct smalti_export_progress {
	bool checking;  /**< names are being compared, nothing is written yet */
	int64_t rows;   /**< processed rows, with those of an earlier run */
	int64_t before; /**< rows of these that an earlier run processed */
	int64_t safe;   /**< rows of these that are stored safely on disk: a stopped export continues there */
	int64_t total;
	int64_t failed; /**< rows that could not be exported, with those of an earlier run; of a shared
			   export only this call's */
	int64_t empty;  /**< rows without any features: items that had failed; likewise */
	int64_t files;  /**< written by this call */
	/** Who has all that is left, or the lock, for a person, until the callback returns; NULL: nobody is
	 * waited for. */
	const char *waits_for;
	bool complete; /**< all rows are processed and stored safely on disk */
};

struct smalti_export_options {
	const char *directory; /**< of features */
	const char *output;    /**< directory; created if necessary */
	enum smalti_export_format format;
	int64_t shard_bytes; /**< approximate size of files of safetensors and webdataset; 0: 1 GiB */
	bool restart;        /**< start again instead of resuming */
	/** Share the export, of SMALTI_EXPORT_PIXART alone, with all processes that call this for `output`,
	 * on any machines that see both directories: each writes a part, and it ends when all is written. */
	bool share;
	int64_t lease_seconds; /**< seconds without a sign of life after which the part of a process on
				  another machine is taken over; 0: 300 */
	/** Called after each row, if not NULL; false stops the export, which can be resumed. */
	bool (*on_progress)(void *user, const struct smalti_export_progress *progress);
	/** Called for each row that could not be exported, if not NULL. */
	void (*failed)(void *user, const struct smalti_error *error);
	void *user;
};

void smalti_export_defaults(struct smalti_export_options *options);

/** Writes what is committed in the directory. An interrupted export continues from what is stored safely on
 * disk. 0 when it came to the end, `progress` says how; -1 with SMALTI_ECANCELLED when `on_progress` stopped
 * it, SMALTI_EINVAL for an output that is of something else or for two items with the same name (PixArt;
 * nothing is written then), SMALTI_EIO for a full disk and similar errors. */
int smalti_export(const struct smalti_export_options *options, struct smalti_export_progress *progress,
		  struct smalti_error *error);

SMALTI_END_DECLS
