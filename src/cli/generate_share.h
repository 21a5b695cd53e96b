/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/generate.h"
#include "share/list.h"
#include "text/line_index.h"

/* `smalti generate --share`: processes that make the images of one list of prompts. What they tell each other
 * lies in OUTPUT/.share (share/list.h); its items are the lines of the list. */

/* Lines that this process has claimed. */
struct smalti_generate_part {
	struct smalti_range lines; /* counted from 0 */
	int64_t images;            /* that are being made */
	bool submitted;            /* all that are to be made */
	bool failed;               /* a line, or an image */
	bool dropped;              /* some images: others make them */
	struct smalti_generate_part *next;
};

struct smalti_generate_share {
	struct smalti_generation *generation;
	char *directory;
	struct smalti_line_index index;
	struct smalti_shared_list *list;
	struct smalti_generate_part *parts; /* all that are not finished, the latest first */
	struct smalti_generate_part *part;  /* whose lines are read */
	bool claiming;                      /* nothing is lost if a wait for the lock ends */
	bool told;                          /* that the lock is waited for */
};

/* Opens the shared list of a generation whose model is open. Close it after a failure, too. */
int smalti_generate_share_open(struct smalti_generation *generation, struct smalti_error *error);
/* Gives back what was claimed. NULL is fine. */
void smalti_generate_share_close(struct smalti_generate_share *share);

/* Makes parts of the list until nothing is left, or a signal comes. */
int smalti_generate_share_run(struct smalti_generation *generation, struct smalti_batch *batch,
			      struct smalti_error *error);
/* Returns 1 if an image is there, 0 if not; -1 if another stands in its place. */
int smalti_generate_share_find(const struct smalti_image_file *file, struct smalti_error *error);
/* Puts an image in place, unless the claim was lost or another image is there. */
int smalti_generate_share_commit(struct smalti_generation *generation,
				 const struct smalti_generate_part *part, struct smalti_image_file *file,
				 bool *lost, struct smalti_error *error);

/* Returns what must be the same in all processes; free with cJSON_Delete(). */
cJSON *smalti_generate_share_identity(struct smalti_generation *generation,
				      const struct smalti_line_index *index, struct smalti_error *error);
extern const struct smalti_identity_remedy smalti_generate_share_remedies[];
