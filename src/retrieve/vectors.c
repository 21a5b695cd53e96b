/* SPDX-License-Identifier: Apache-2.0 */
#include "retrieve/vectors.h"
#include "base/base.h"
#include "base/dtype.h"

#include <math.h>

int64_t smalti_vector_dim(const struct smalti_features_info *info, enum smalti_index_kind kind)
{
	if (kind == SMALTI_INDEX_CAPTIONS)
		return info->caption_count > 0 ? info->text_width : 0;
	return info->latent_channels * SMALTI_POOLED * SMALTI_POOLED;
}

int smalti_vector_caption(const struct smalti_features_info *info, const char *directory, const char *name,
			  struct smalti_error *error)
{
	char known[512] = "";
	if (!name && info->caption_count == 1)
		return 0;
	for (int i = 0; i < info->caption_count; i++) {
		if (strcmp(info->captions[i], name ? name : "prompt") == 0)
			return i;
		smalti_append(known, sizeof(known), ", ", "%s", info->captions[i]);
	}
	return smalti_fail(error, SMALTI_EINVAL, "%s: has no caption '%s': its captions are %s", directory,
			   name ? name : "prompt", *known ? known : "none");
}

cJSON *smalti_vector_model(const struct smalti_features_info *info, enum smalti_index_kind kind,
			   struct smalti_error *error)
{
	SCOPED(cJSON_Delete)
	cJSON *provenance = smalti_json_parse(info->provenance, strlen(info->provenance), error);
	const char *part = kind == SMALTI_INDEX_CAPTIONS ? "text" : "pictures";
	cJSON *model = provenance ? cJSON_DetachItemFromObjectCaseSensitive(provenance, part) : NULL;
	if (provenance && !model)
		smalti_fail(error, SMALTI_EFORMAT,
			    "the features do not say of which model they are: \"%s\" is missing", part);
	return model;
}

int smalti_model_is(const cJSON *model, const char *whose, const cJSON *expected, const char *others,
		    struct smalti_error *error)
{
	const char *own = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(model, "model"));
	const char *other = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(expected, "model"));
	if (own && other && strcmp(own, other) == 0)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "%s: is of the model %s, the items of %s are of %s: compare features of one model",
			   whose, own ? own : "(unknown)", others, other ? other : "(unknown)");
}

static bool is_finite(int64_t count, const double *values)
{
	for (int64_t i = 0; i < count; i++)
		if (!isfinite(values[i]))
			return false;
	return true;
}

enum { PIECE = 256 };

/* Returns values `first` to `first + count` as f32; at most PIECE. */
static const float *widen(enum smalti_features_type type, const void *values, int64_t first, int64_t count,
			  float piece[PIECE])
{
	const enum smalti_dtype dtype = (enum smalti_dtype)type;
	smalti_widen(dtype, (const char *)values + first * smalti_dtype_bytes(dtype), count, piece);
	return piece;
}

static bool mean_of_text(const struct smalti_features_info *info, const struct smalti_features_text *text,
			 double *vector)
{
	const int64_t width = info->text_width;
	float room[PIECE];
	memset(vector, 0, (size_t)width * sizeof(*vector));
	for (int64_t token = 0; token < text->tokens; token++)
		for (int64_t at = 0; at < width; at += PIECE) {
			const int64_t count = smalti_min(PIECE, width - at);
			const float *piece = widen(info->type, text->values, token * width + at, count, room);
			for (int64_t i = 0; i < count; i++)
				vector[at + i] += (double)piece[i];
		}
	for (int64_t i = 0; i < width; i++)
		vector[i] /= (double)text->tokens;
	return text->tokens > 0 && is_finite(width, vector);
}

static double sum_of(enum smalti_features_type type, const void *values, int64_t first, int64_t count)
{
	double sum = 0;
	float room[PIECE];
	for (int64_t at = 0; at < count; at += PIECE) {
		const int64_t size = smalti_min(PIECE, count - at);
		const float *piece = widen(type, values, first + at, size, room);
		for (int64_t i = 0; i < size; i++)
			sum += (double)piece[i];
	}
	return sum;
}

/* Returns the mean of a plane over the rows and the columns [first, end). */
static double mean_of_window(const struct smalti_features_info *info,
			     const struct smalti_features_image *image, int64_t plane, const int64_t rows[2],
			     const int64_t columns[2])
{
	const int64_t width = columns[1] - columns[0];
	double sum = 0;
	for (int64_t y = rows[0]; y < rows[1]; y++)
		sum += sum_of(info->type, image->values,
			      (plane * image->latent_height + y) * image->latent_width + columns[0], width);
	return sum / (double)((rows[1] - rows[0]) * width);
}

/* Computes part i of SMALTI_POOLED parts of an axis. */
static void window(int64_t size, int64_t i, int64_t range[2])
{
	range[0] = i * size / SMALTI_POOLED;
	range[1] = ((i + 1) * size + SMALTI_POOLED - 1) / SMALTI_POOLED;
}

static bool pooled_image(const struct smalti_features_info *info, const struct smalti_features_image *image,
			 double *vector)
{
	double *at = vector;
	if (image->latent_height == 0)
		return false;
	for (int64_t channel = 0; channel < info->latent_channels; channel++)
		for (int64_t y = 0; y < SMALTI_POOLED; y++)
			for (int64_t x = 0; x < SMALTI_POOLED; x++) {
				int64_t rows[2], columns[2];
				window(image->latent_height, y, rows);
				window(image->latent_width, x, columns);
				*at++ = mean_of_window(info, image, channel, rows, columns);
			}
	return is_finite(at - vector, vector);
}

bool smalti_vector_of(const struct smalti_features_info *info, enum smalti_index_kind kind, int caption,
		      const struct smalti_features_row *row, double *vector)
{
	if (kind == SMALTI_INDEX_CAPTIONS)
		return mean_of_text(info, &row->texts[caption], vector);
	return pooled_image(info, &row->image, vector);
}

bool smalti_vector_normalise(int64_t dim, const double *vector, float *unit)
{
	double square = 0;
	for (int64_t i = 0; i < dim; i++)
		square += vector[i] * vector[i];
	const bool is_unit = square > 0 && isfinite(square);
	for (int64_t i = 0; i < dim; i++)
		unit[i] = is_unit ? (float)(vector[i] / sqrt(square)) : 0;
	return is_unit;
}
