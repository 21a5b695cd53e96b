/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "smalti/features.h"
#include "smalti/retrieve.h"

/* What a row of features is in an index: smalti/retrieve.h. */

enum { SMALTI_POOLED = 8 }; /* rows and columns of an image's averages */

/* Of the features' vectors; 0: they have none of that kind. */
int64_t smalti_vector_dim(const struct smalti_features_info *info, enum smalti_index_kind kind);

/* Which caption is meant: the one of that name; of NULL the only one, or "prompt". -1 with an error. */
int smalti_vector_caption(const struct smalti_features_info *info, const char *directory, const char *name,
			  struct smalti_error *error);

/* What the features' provenance says of the model that they are of, and how it was used; NULL with an error.
 */
cJSON *smalti_vector_model(const struct smalti_features_info *info, enum smalti_index_kind kind,
			   struct smalti_error *error);

/* Whether `model`, which that of `whose` is, is the one that those of `others` are of; SMALTI_EINVAL. */
int smalti_model_is(const cJSON *model, const char *whose, const cJSON *expected, const char *others,
		    struct smalti_error *error);

/* Before it is whitened or normalised, in double; false: the row has none, or one that is not finite. */
bool smalti_vector_of(const struct smalti_features_info *info, enum smalti_index_kind kind, int caption,
		      const struct smalti_features_row *row, double *vector);

/* To length 1, as f32; false, and zeros: it is 0. */
bool smalti_vector_normalise(int64_t dim, const double *vector, float *unit);
