/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "checkpoint/adapter.h"

/* The factor s of an adapter's modules, as peft's configuration says it: of a directory in
 * adapter_config.json, of diffusers' files in their metadata. */
struct smalti_adapter_scaling {
	bool known; /* false: no configuration, and α is the rank unless the file has it */
	double alpha;
	bool rank_stabilised;
	struct smalti_adapter_pattern *patterns; /* exceptions: the first that fits decides */
	int64_t count;
};

/* Reads it from keys that begin with `prefix`, and refuses adapters that are not LoRA alone. Free it in any
 * case. */
int smalti_adapter_scaling_read(struct smalti_adapter_scaling *scaling, const cJSON *config,
				const char *prefix, struct smalti_error *error);
void smalti_adapter_scaling_free(struct smalti_adapter_scaling *scaling);
/* Computes s of a module of some rank. */
int smalti_adapter_scale(const struct smalti_adapter_scaling *scaling, const char *module, int64_t rank,
			 double *scale, struct smalti_error *error);
