/* SPDX-License-Identifier: Apache-2.0 */
#include "retrieve/recall.h"

#include <inttypes.h>
#include <stdio.h>

const int64_t smalti_recall_depths[SMALTI_RECALL_DEPTHS] = {1, 5, 10};

void smalti_recall_add(struct smalti_recall *recall, int64_t place)
{
	if (place < 0)
		return;
	recall->mrr += 1.0 / (double)(place + 1);
	for (int i = 0; i < SMALTI_RECALL_DEPTHS; i++)
		recall->at[i] += place < smalti_recall_depths[i];
}

void smalti_recall_end(struct smalti_recall *recall, int64_t count)
{
	const double share = count > 0 ? 1.0 / (double)count : 0;
	recall->mrr *= share;
	for (int i = 0; i < SMALTI_RECALL_DEPTHS; i++)
		recall->at[i] *= share;
}

void smalti_recall_write(cJSON *object, const char *name, const struct smalti_recall *recall)
{
	cJSON *rates = cJSON_AddObjectToObject(object, name);
	for (int i = 0; i < SMALTI_RECALL_DEPTHS; i++) {
		char key[16];
		snprintf(key, sizeof(key), "R@%" PRId64, smalti_recall_depths[i]);
		cJSON_AddNumberToObject(rates, key, recall->at[i]);
	}
	cJSON_AddNumberToObject(rates, "MRR", recall->mrr);
}
