/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/gguf_names.h"

static const char prefix[] = "text_encoders.t5xxl.transformer."; /* stable-diffusion.cpp's */

/* The names of llama.cpp (gguf-py's tensor_mapping.py) before ".weight", and those of transformers; in a
 * block, and elsewhere. The gate is wi_0, which GELU is of; nothing is transposed. */
static const struct pair {
	const char *name, *present;
} in_block[] =
    {
	{"attn_q", "layer.0.SelfAttention.q"},
	{"attn_k", "layer.0.SelfAttention.k"},
	{"attn_v", "layer.0.SelfAttention.v"},
	{"attn_o", "layer.0.SelfAttention.o"},
	{"attn_rel_b", "layer.0.SelfAttention.relative_attention_bias"},
	{"attn_norm", "layer.0.layer_norm"},
	{"ffn_gate", "layer.1.DenseReluDense.wi_0"},
	{"ffn_up", "layer.1.DenseReluDense.wi_1"},
	{"ffn_down", "layer.1.DenseReluDense.wo"},
	{"ffn_norm", "layer.1.layer_norm"},
},
  elsewhere[] = {
      {"token_embd", "shared"},
      {"enc.output_norm", "encoder.final_layer_norm"},
};

/* Returns the present name of `name`, which ends in ".weight"; NULL: none. */
static const char *find(const struct pair *pairs, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		const size_t length = strlen(pairs[i].name);
		if (strncmp(name, pairs[i].name, length) == 0 && strcmp(name + length, ".weight") == 0)
			return pairs[i].present;
	}
	return NULL;
}

/* Returns what follows the number of a block, which becomes *block; NULL: it is no name in a block. */
static const char *behind_block(const char *name, long *block)
{
	static const char beginning[] = "enc.blk.";
	if (strncmp(name, beginning, strlen(beginning)) != 0)
		return NULL;
	name += strlen(beginning);
	const size_t digits = strspn(name, "0123456789");
	*block = strtol(name, NULL, 10);
	return digits > 0 && digits < 5 && name[digits] == '.' ? name + digits + 1 : NULL;
}

void smalti_gguf_t5_name(const char *name, char present[SMALTI_GGUF_NAME])
{
	long block = 0;
	if (strncmp(name, prefix, strlen(prefix)) == 0)
		name += strlen(prefix);
	const char *found = find(elsewhere, COUNT_OF(elsewhere), name);
	if (found) {
		snprintf(present, SMALTI_GGUF_NAME, "%s.weight", found);
		return;
	}
	const char *rest = behind_block(name, &block);
	if (rest)
		found = find(in_block, COUNT_OF(in_block), rest);
	if (found)
		snprintf(present, SMALTI_GGUF_NAME, "encoder.block.%ld.%s.weight", block, found);
	else
		snprintf(present, SMALTI_GGUF_NAME, "%s", name);
}
