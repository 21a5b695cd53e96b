/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/* A directory of features without a model. Value i of an item's caption c is (index + c + i) % 61 / 4 - 7,
 * that of its image (index + i) % 59 / 4 - 7, which every type holds exactly. Caption c of item i has 1 + (7
 * i + c) % `max_tokens` tokens, with the ids 3, 4, ...; images are `latent_height` + i % 3 x 3. */
struct features_directory {
	enum smalti_dtype dtype;
	const char *const *keys; /* the items', in their order */
	int64_t count;
	int caption_count;
	const char *captions[2];
	int64_t text_width, max_tokens;
	int64_t latent_channels, latent_height; /* 0: no images */
	int64_t shard_items;
	int64_t failed; /* this item has no features: stage "image"; -1: none */
	bool compress;
};

int make_features_directory(const char *path, const struct features_directory *directory,
			    struct smalti_error *error);
