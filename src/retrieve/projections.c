/* SPDX-License-Identifier: Apache-2.0 */
#include "retrieve/projections.h"
#include "base/sealed.h"
#include "retrieve/index.h"

enum { MOST = 1 << 24 };

const char smalti_projections_file[] = "projections.safetensors";
const char smalti_projections_description[] = "projections.json";

/* The bias and weight of each kind, in bytewise order of their names. */
static const char *const names[SMALTI_KINDS][2] = {
    [SMALTI_INDEX_CAPTIONS] = {"captions.bias", "captions.weight"},
    [SMALTI_INDEX_IMAGES] = {"images.bias", "images.weight"}};

static int read_side(struct smalti_projections *p, const cJSON *object, int kind, struct smalti_error *error)
{
	const cJSON *side = cJSON_GetObjectItemCaseSensitive(object, smalti_index_kinds[kind]);
	p->of[kind].model = cJSON_GetObjectItemCaseSensitive(side, "model");
	if (smalti_json_int(side, "width", SMALTI_JSON_REQUIRED, 1, MOST, &p->of[kind].width, error) < 0)
		return -1;
	return kind == SMALTI_INDEX_CAPTIONS
		   ? smalti_json_string(side, "caption", SMALTI_JSON_REQUIRED, &p->caption, error)
		   : 0;
}

static int read_sides(struct smalti_projections *p, const cJSON *description, struct smalti_error *error)
{
	const cJSON *object = cJSON_GetObjectItemCaseSensitive(description, "projections");
	if (smalti_json_int(object, "dim", SMALTI_JSON_REQUIRED, 1, MOST, &p->dim, error) < 0)
		return -1;
	for (int kind = 0; kind < SMALTI_KINDS; kind++)
		if (read_side(p, object, kind, error) < 0)
			return -1;
	return 0;
}

static int find_tensors(struct smalti_projections *p, const char *path, struct smalti_error *error)
{
	for (int kind = 0; kind < SMALTI_KINDS; kind++) {
		const int64_t shape[] = {p->dim, p->of[kind].width};
		if (smalti_files_tensor(p->file, path, names[kind][0], 1, shape, &p->of[kind].bias, error) <
			0 ||
		    smalti_files_tensor(p->file, path, names[kind][1], 2, shape, &p->of[kind].weight, error) <
			0)
			return -1;
	}
	return 0;
}

int smalti_projections_read(struct smalti_projections *p, const cJSON *description, const char *described,
			    const char *directory, const char *remedy, struct smalti_error *error)
{
	*p = (struct smalti_projections){0};
	SCOPED(free) char *path = smalti_format(error, "%s/%s", directory, smalti_projections_file);
	if (!path)
		return -1;
	if (read_sides(p, description, error) < 0) {
		smalti_error_prefix(error, "%s/%s: \"projections\"", directory, described);
		return -1;
	}
	if (smalti_files_check(description, described, directory, smalti_projections_file, remedy, error) < 0)
		return -1;
	p->digest = smalti_files_digest(description, smalti_projections_file);
	p->file = smalti_safetensors_open(path, error);
	return p->file ? find_tensors(p, path, error) : -1;
}

static cJSON *read_description(const char *directory, struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/%s", directory, smalti_projections_description);
	const int found = path ? smalti_find_file(path, error) : -1;
	if (found < 0)
		return NULL;
	if (!found) {
		smalti_fail(error, SMALTI_EFORMAT,
			    "%s: has no projections, for it has no %s; smalti retrieve train makes them",
			    directory, smalti_projections_description);
		return NULL;
	}
	cJSON *description = smalti_sealed_read(path, error);
	if (!description || smalti_json_check_format(description, SMALTI_PROJECTIONS_FORMAT,
						     SMALTI_PROJECTIONS_VERSION, ": train anew", error) == 0)
		return description;
	smalti_error_prefix(error, "%s", path);
	cJSON_Delete(description);
	return NULL;
}

int smalti_projections_open(struct smalti_projections *p, const char *directory, cJSON **description,
			    struct smalti_error *error)
{
	*p = (struct smalti_projections){0};
	*description = read_description(directory, error);
	return *description ? smalti_projections_read(p, *description, smalti_projections_description,
						      directory, "train anew", error)
			    : -1;
}

void smalti_projections_close(struct smalti_projections *p)
{
	smalti_safetensors_close(p->file);
	*p = (struct smalti_projections){0};
}

int smalti_projections_write(const struct smalti_projections *p, const char *directory,
			     struct smalti_error *error)
{
	struct smalti_tensor_view views[2 * SMALTI_KINDS];
	SCOPED(free) char *path = smalti_format(error, "%s/%s", directory, smalti_projections_file);
	if (!path)
		return -1;
	for (int kind = 0; kind < SMALTI_KINDS; kind++) {
		const struct smalti_projection *of = &p->of[kind];
		views[2 * kind] = (struct smalti_tensor_view){.name = names[kind][0],
							      .dtype = SMALTI_F32,
							      .rank = 1,
							      .shape = {p->dim},
							      .data = of->bias};
		views[2 * kind + 1] = (struct smalti_tensor_view){.name = names[kind][1],
								  .dtype = SMALTI_F32,
								  .rank = 2,
								  .shape = {p->dim, of->width},
								  .data = of->weight};
	}
	return smalti_safetensors_write(path, views, COUNT_OF(views), error);
}

int smalti_projections_describe(const struct smalti_projections *p, cJSON *description,
				struct smalti_error *error)
{
	cJSON *object = cJSON_AddObjectToObject(description, "projections");
	bool done = cJSON_AddNumberToObject(object, "dim", (double)p->dim);
	for (int kind = 0; kind < SMALTI_KINDS && done; kind++) {
		cJSON *side = cJSON_AddObjectToObject(object, smalti_index_kinds[kind]);
		done = cJSON_AddNumberToObject(side, "width", (double)p->of[kind].width) &&
		       (kind != SMALTI_INDEX_CAPTIONS || smalti_json_add_text(side, "caption", p->caption)) &&
		       cJSON_AddItemToObject(side, "model", cJSON_Duplicate(p->of[kind].model, true));
	}
	return done ? 0 : smalti_fail(error, SMALTI_ENOMEM, "no memory to describe projections");
}

void smalti_projections_apply(const struct smalti_projections *p, enum smalti_index_kind kind,
			      const double *vector, double *projected)
{
	const struct smalti_projection *of = &p->of[kind];
	for (int64_t i = 0; i < p->dim; i++) {
		const float *weight = of->weight + i * of->width;
		double sum = (double)of->bias[i];
		for (int64_t j = 0; j < of->width; j++)
			sum += (double)weight[j] * vector[j];
		projected[i] = sum;
	}
}
