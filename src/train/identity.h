/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "share/identity.h"
#include "train/data.h"

/* Grows when the order of a sum changes. */
enum { SMALTI_TRAINING_ARITHMETIC = 3 };

/* Returns what decides a run's bits: its data, the first weights (by their digest) and the options that
 * change a value. NULL without memory. */
cJSON *smalti_training_identity(const struct smalti_train_options *options,
				const struct smalti_training_data *data, const char *weights,
				struct smalti_error *error);

/* The option of each difference; another instruction set or order of sums is accepted. */
extern const struct smalti_identity_rules smalti_training_rules;

/* The names of the options' values, ended by NULL. @{ */
extern const char *const smalti_optimizers[],
    *const smalti_null_tokens[], *const smalti_came_groupings[],
				     *const smalti_schedules[], *const smalti_rate_rules[],
								    *const smalti_bucketings[],
									*const smalti_damages[],
									    *const smalti_recomputations[];
/* @} */
