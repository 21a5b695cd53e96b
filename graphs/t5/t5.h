/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/config.h"
#include "graphs/text_encoder.h"

/* Makes the T5 v1.1 encoder (docs/reference.md 1.6, 2.2). Its matrices are never packed: products read
 * them as the mapped file has them. NULL with an error that names the tensor that is missing or has
 * another shape. */
struct smalti_text_encoder *smalti_t5_new(struct smalti_task_group *task_group,
					  const struct smalti_t5_config *config,
					  const struct smalti_checkpoint *checkpoint,
					  enum smalti_dtype compute, struct smalti_error *error);
