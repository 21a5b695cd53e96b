/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"
#include "base/json.h"
#include "checkpoint/inventory.h"
#include "graphs/tensors.h"

/* The published models, and a tiny one. */
enum smalti_geometry {
	SMALTI_SIGMA_256,
	SMALTI_SIGMA_512,
	SMALTI_SIGMA_1024,
	SMALTI_SIGMA_2K,
	SMALTI_ALPHA_512,
	SMALTI_TINY,
	SMALTI_GEOMETRIES,
};
extern const char *const smalti_geometry_names[SMALTI_GEOMETRIES + 1]; /* ended by NULL */

/* The names of each component in files and directories. */
struct smalti_component_names {
	const char *directory;      /* "text_encoder" */
	const char *stem;           /* of its weight files */
	const char *library, *kind; /* in model_index.json */
};
extern const struct smalti_component_names smalti_component_names[SMALTI_COMPONENTS];

/* Returns a name such as "PixArtSigmaPipeline". */
const char *smalti_geometry_pipeline(enum smalti_geometry geometry);

/* Makes a component's config.json. Free with cJSON_Delete(). `t5_layers` 0: as many as the geometry has. */
cJSON *smalti_geometry_config(enum smalti_geometry geometry, enum smalti_component component,
			      int64_t t5_layers, enum smalti_dtype dtype, struct smalti_error *error);

/* Lists the tensors of a component with that config.json. */
int smalti_component_inventory(enum smalti_component component, const cJSON *config, enum smalti_dtype dtype,
			       struct smalti_inventory *inventory, struct smalti_error *error);
