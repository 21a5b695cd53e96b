/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_DATASET_DATASET_TEXT_H
#define SMALTI_DATASET_DATASET_TEXT_H

#include "base/byte_reader.h"
#include "dataset/dataset_format.h"

/* What the state of a format begins with that reads its list as a text. */
struct smalti_dataset_text {
	const struct smalti_dataset_source *source;
	const struct smalti_dataset_options *options;
	int64_t line; /* that comes next, from 1, if the format counts them */
	struct smalti_byte_reader reader;
};

/* A state of so many bytes, zeros but for the text at its front, which is at the first byte of the source's
 * file. */
void *smalti_dataset_text_open(const struct smalti_dataset_source *source, int64_t bytes,
			       struct smalti_error *error);
/* For the rows of formats. Closing frees the state. */
void smalti_dataset_text_close(void *state);
struct smalti_dataset_place smalti_dataset_text_tell(const void *state);
void smalti_dataset_text_seek(void *state, const struct smalti_dataset_place *place);

#endif
