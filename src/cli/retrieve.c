/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/retrieve.h"

static const struct smalti_command *const commands[] = {
    &smalti_retrieve_train_command,
    &smalti_retrieve_index_command,
    &smalti_retrieve_query_command,
    NULL,
};

const struct smalti_command smalti_retrieve_command = {
    .name = "smalti retrieve",
    .summary = "find the items of extracted features that are like a query",
    .description = "Searches the features that smalti extract has written. An index has one vector for each "
		   "item, of its "
		   "caption or of its image; a query finds the items whose vectors have the largest cosine "
		   "with its own. Projections, once they are trained, let texts find images. "
		   "Every item is looked at, so that the result is exact.",
    .commands = commands,
    .related = "smalti",
};
