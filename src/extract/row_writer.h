/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXTRACT_ROW_WRITER_H
#define SMALTI_EXTRACT_ROW_WRITER_H

#include "extract/window.h"

/* A thread that writes the rows of windows into shards, in their order, and commits each shard with its last
 * window: so a slow disk keeps no worker waiting, until the windows that are not written are as many as
 * memory takes. */
struct smalti_row_writer;

struct smalti_row_writer *smalti_row_writer_open(struct smalti_store *store,
						 const struct smalti_shard_schema *schema,
						 enum smalti_compression compression,
						 struct smalti_error *error);

/* The next window; the writer's own from here on, though its rows are not there yet. A shard's windows follow
 * each other. */
void smalti_row_writer_add(struct smalti_row_writer *writer, struct smalti_window *window);
/* Its rows are there. */
void smalti_row_writer_done(struct smalti_row_writer *writer, struct smalti_window *window);

struct smalti_row_writer_state {
	int64_t waiting;           /* windows that are not written */
	int64_t rows;              /* that are done and wait */
	int64_t written, bytes;    /* rows in committed shards, and their values' bytes before compression */
	double seconds;            /* of writing */
	struct smalti_error error; /* code 0: none. After one nothing more is written */
};
void smalti_row_writer_state(struct smalti_row_writer *writer, struct smalti_row_writer_state *state);
/* Until no more than `most` windows wait, or some tenths of a second have passed. */
void smalti_row_writer_await(struct smalti_row_writer *writer, int64_t most);

/* Writes what is done, drops the windows from the first on that is not, and commits what there is of the
 * shard that was begun. *state is the last one. -1 with what failed ever. NULL is fine. */
int smalti_row_writer_close(struct smalti_row_writer *writer, struct smalti_row_writer_state *state,
			    struct smalti_error *error);

#endif
