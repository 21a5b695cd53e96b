/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXTRACT_RUN_RECORD_H
#define SMALTI_EXTRACT_RUN_RECORD_H

#include "extract/jobs.h"
#include "extract/row_writer.h"

/* What a run measures of itself, into the log that `smalti report` draws. Without one if that cannot be
 * written. */
struct smalti_run_record;

struct smalti_run_record *smalti_run_record_open(const struct smalti_extract_parts *parts); /* NULL: none */
/* Where the run is; `fetching` images wait for their files. */
void smalti_run_record_add(struct smalti_run_record *record, const struct smalti_extract_progress *progress,
			   const struct smalti_extract_work *work,
			   const struct smalti_row_writer_state *written, int64_t fetching);
/* The captions and images of a window that is complete. */
void smalti_run_record_window(struct smalti_run_record *record, const struct smalti_window *window);
void smalti_run_record_close(struct smalti_run_record *record, const char *end); /* NULL is fine */

#endif
