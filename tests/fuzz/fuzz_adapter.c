/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "checkpoint/adapter.h"

#include <math.h>
#include <stdlib.h>

/* The tensors of a base with two blocks. */
static const struct {
	int component;
	const char *name;
	int64_t shape[2];
} tensors[] = {
    {0, "encoder.block.0.layer.0.SelfAttention.q.weight", {4, 4}},
    {0, "shared.weight", {4, 4}},
    {1, "adaln_single.linear.weight", {12, 2}},
    {1, "proj_out.weight", {2, 2}},
    {1, "transformer_blocks.0.attn1.to_k.weight", {2, 2}},
    {1, "transformer_blocks.0.attn1.to_q.weight", {2, 2}},
    {1, "transformer_blocks.0.attn1.to_v.weight", {2, 2}},
    {1, "transformer_blocks.1.attn1.to_k.weight", {2, 2}},
    {1, "transformer_blocks.1.attn1.to_q.weight", {2, 2}},
    {1, "transformer_blocks.1.attn1.to_v.weight", {2, 2}},
};

static void check(const struct smalti_adapter *adapter)
{
	if (adapter->count < 1)
		abort();
	for (int64_t i = 0; i < adapter->count; i++) {
		const struct smalti_low_rank *c = &adapter->changes[i];
		for (int64_t k = 0; k < c->rank * c->in; k++)
			if (!isfinite(c->a[k]))
				abort();
		for (int64_t k = 0; k < c->out * c->rank; k++)
			if (!isfinite(c->b[k]))
				abort();
		if (smalti_adapter_find(adapter, c->tensor) != c)
			abort();
	}
}

/* The bytes up to the first NUL are peft's configuration, the others the file. Whatever they are, they are
 * refused, or every change is whole and finite. */
FUZZER(data, size)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_inventory lists[SMALTI_ADAPTED_COMPONENTS] = {{0}};
	const struct smalti_adapter_base base = {.tensors = {&lists[0], &lists[1]}};
	const uint8_t *end = size ? memchr(data, 0, size) : NULL;
	if (!end)
		return 0;
	for (size_t i = 0; i < COUNT_OF(tensors); i++)
		smalti_inventory_add(&lists[tensors[i].component], tensors[i].name, SMALTI_F32, 2,
				     tensors[i].shape, &error);
	cJSON *config = end > data ? smalti_json_parse((const char *)data, (size_t)(end - data), NULL) : NULL;
	struct smalti_safetensors *file =
	    smalti_safetensors_parse(end + 1, (int64_t)(data + size - end - 1), &error);
	struct smalti_adapter *adapter =
	    file ? smalti_adapter_read(file, config, "fuzzed", &base, &error) : NULL;
	if ((adapter != NULL) != (error.code == SMALTI_OK))
		abort();
	if (adapter)
		check(adapter);
	smalti_adapter_close(adapter);
	smalti_safetensors_close(file);
	cJSON_Delete(config);
	for (int c = 0; c < SMALTI_ADAPTED_COMPONENTS; c++)
		smalti_inventory_free(&lists[c]);
	return 0;
}
