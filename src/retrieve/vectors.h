/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "smalti/features.h"
#include "smalti/retrieve.h"

/* Makes an index's vector of a row of features: smalti/retrieve.h. */

enum { SMALTI_POOLED = 8 }; /* rows and columns of an image's averages */

/* Returns the dimension of the features' vectors; 0: they have none of that kind. */
int64_t smalti_vector_dim(const struct smalti_features_info *info, enum smalti_index_kind kind);

/* Finds the caption of that name; for NULL the only one, or "prompt". -1 with an error. */
int smalti_vector_caption(const struct smalti_features_info *info, const char *directory, const char *name,
			  struct smalti_error *error);

/* Returns the features' model, and how it was used, from their provenance; NULL with an error. */
cJSON *smalti_vector_model(const struct smalti_features_info *info, enum smalti_index_kind kind,
			   struct smalti_error *error);

/* Checks that `model`, the model of `whose`, is the `expected` one of `others`; else SMALTI_EINVAL. */
int smalti_model_is(const cJSON *model, const char *whose, const cJSON *expected, const char *others,
		    struct smalti_error *error);

/* Makes a row's vector before whitening or normalisation, in double; false: the row has none, or one that is
 * not finite. */
bool smalti_vector_of(const struct smalti_features_info *info, enum smalti_index_kind kind, int caption,
		      const struct smalti_features_row *row, double *vector);

/* Scales to length 1, as f32; false, and zeros, if it is 0. */
bool smalti_vector_normalise(int64_t dim, const double *vector, float *unit);
