/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/dit_train.h"

/* Bytes of main memory that a sample's tiles take at most from the first task of its forward to the last of
 * its backward, in one place: with `bounded`, whatever order the tasks run in, and where it is not, even if
 * the tiles of all layers are there together. `tokens` and `text_tokens` are read of the sample, its extents,
 * and what is recomputed. */
int64_t smalti_dit_train_memory(const struct smalti_dit_train *train, const struct smalti_dit_sample *sample);

/* Of the copies of the parameters that a step has, whatever its samples. */
int64_t smalti_dit_train_rounded_bytes(const struct smalti_dit_train *train,
				       const struct smalti_session *session);

/* Of what each worker keeps for its kernels, at most. */
int64_t smalti_dit_train_scratch(const struct smalti_dit_train *train,
				 const struct smalti_dit_sample *sample);
