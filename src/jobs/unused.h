/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/config.h"
#include "graphs/tensors.h"

/* Looks for tensors that the component of this configuration does not have, such as LoRA weights, and names
 * them in *note: a line for the user, no failure. *note keeps other components' text, and does not change
 * without such tensors. Tensors that other programs leave unused in files are ignored. -1 when memory is
 * short. */
int smalti_unused_tensors(const struct smalti_checkpoint *checkpoint, enum smalti_component component,
			  const void *config, struct smalti_error *note, struct smalti_error *error);

/* Adds another line to such a note, if there is one. */
void smalti_unused_say(struct smalti_error *note, const struct smalti_error *more);

enum { SMALTI_DIGEST_LENGTH = 32 }; /* hexadecimal digits */

/* Identifies models at little cost: XXH3 over whole small files (an absent one differs from an empty
 * one) and over each tensor's name, type, shape and first bytes: training changes all weights, and reading
 * gigabytes at every start would take longer than the work. */
int smalti_digest(const char *const *files, int file_count, const struct smalti_checkpoint *const *weights,
		  int weight_count, char digest[SMALTI_DIGEST_LENGTH + 1], struct smalti_error *error);
