/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXTRACT_RUN_RECORD_H
#define SMALTI_EXTRACT_RUN_RECORD_H

#include "extract/window.h"
#include "store/run_log.h"

/* What a run measures of itself, into the log that `smalti report` draws. Without one if that cannot be
 * written. */
struct smalti_run_record;

struct smalti_run_record *smalti_run_record_open(const struct smalti_extract_parts *parts); /* NULL: none */
/* Where the run is; `busy` is filled in. */
void smalti_run_record_add(struct smalti_run_record *record, struct smalti_run_sample sample);
/* The captions and images of a window that is complete. */
void smalti_run_record_window(struct smalti_run_record *record, const struct smalti_window *window);
void smalti_run_record_close(struct smalti_run_record *record, const char *end); /* NULL is fine */

#endif
