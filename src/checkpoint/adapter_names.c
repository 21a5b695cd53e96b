/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/adapter_names.h"

#include <ctype.h>

enum { NAME_SIZE = 160 };

/* The research code's modules of a transformer, and those of diffusers; %d is a block. */
static const struct {
	const char *name, *parts[SMALTI_FUSED_PARTS + 1];
} research[] = {
    {"x_embedder.proj", {"pos_embed.proj"}},
    {"y_embedder.y_proj.fc1", {"caption_projection.linear_1"}},
    {"y_embedder.y_proj.fc2", {"caption_projection.linear_2"}},
    {"t_embedder.mlp.0", {"adaln_single.emb.timestep_embedder.linear_1"}},
    {"t_embedder.mlp.2", {"adaln_single.emb.timestep_embedder.linear_2"}},
    {"csize_embedder.mlp.0", {"adaln_single.emb.resolution_embedder.linear_1"}},
    {"csize_embedder.mlp.2", {"adaln_single.emb.resolution_embedder.linear_2"}},
    {"ar_embedder.mlp.0", {"adaln_single.emb.aspect_ratio_embedder.linear_1"}},
    {"ar_embedder.mlp.2", {"adaln_single.emb.aspect_ratio_embedder.linear_2"}},
    {"t_block.1", {"adaln_single.linear"}},
    {"final_layer.linear", {"proj_out"}},
    {"blocks.%d.attn.qkv",
     {"transformer_blocks.%d.attn1.to_q", "transformer_blocks.%d.attn1.to_k",
      "transformer_blocks.%d.attn1.to_v"}},
    {"blocks.%d.attn.proj", {"transformer_blocks.%d.attn1.to_out.0"}},
    {"blocks.%d.cross_attn.q_linear", {"transformer_blocks.%d.attn2.to_q"}},
    {"blocks.%d.cross_attn.kv_linear",
     {"transformer_blocks.%d.attn2.to_k", "transformer_blocks.%d.attn2.to_v"}},
    {"blocks.%d.cross_attn.proj", {"transformer_blocks.%d.attn2.to_out.0"}},
    {"blocks.%d.mlp.fc1", {"transformer_blocks.%d.ff.net.0.proj"}},
    {"blocks.%d.mlp.fc2", {"transformer_blocks.%d.ff.net.2"}},
};

/* What files put before a module's name. In a flat name each dot of the module is an underscore. */
static const struct {
	const char *text;
	bool flat;
} prefixes[] = {
    {SMALTI_PEFT_PREFIX, false},
    {SMALTI_SCRIPT_PREFIX, false},
    {"transformer.", false},
    {"diffusion_model.", false},
    {"unet.", false},
    {"text_encoder.", false},
    {"", false},
    {"lora_transformer_", true},
    {"lora_unet_", true},
    {"lora_te_", true},
    {"lora_te1_", true},
    {"lycoris_", true},
};

/* Endings of tensors' names. Savers may put the adapter's name where `named` is set: lora_A.default.weight.
 */
static const struct {
	const char *ending, *after;
	enum smalti_adapter_role role;
	bool named;
} endings[] = {
    {".lora_A", ".weight", SMALTI_ADAPTER_A, true},
    {".lora_B", ".weight", SMALTI_ADAPTER_B, true},
    {".lora_down", ".weight", SMALTI_ADAPTER_A, false},
    {".lora_up", ".weight", SMALTI_ADAPTER_B, false},
    {".lora.down", ".weight", SMALTI_ADAPTER_A, false},
    {".lora.up", ".weight", SMALTI_ADAPTER_B, false},
    {".alpha", "", SMALTI_ADAPTER_ALPHA, false},
    {".dora_scale", "", SMALTI_ADAPTER_SCALE, false},
    {".lora_magnitude_vector", "", SMALTI_ADAPTER_MAGNITUDE, true},
    {".lora_magnitude_vector", ".weight", SMALTI_ADAPTER_MAGNITUDE, true},
};

static const struct {
	const char *part, *kind;
} unsupported[] = {
    {"hada_", "LoHa"},
    {"lokr_", "LoKr"},
    {"oft_", "OFT"},
    {"lora_mid", "LoRA with a third factor (lora_mid)"},
    {".diff_b", "full differences of biases (diff_b)"},
    {".diff", "full differences of weights (diff)"},
    {"lora_B.bias", "LoRA with biases (lora_bias)"},
    {"lora_embedding_", "LoRA of an embedding"},
    {"modules_to_save", "modules saved as a whole (modules_to_save)"},
};

/* Tensors with the shape of a matrix that no product reads. */
static const char *const tables[] = {"shared.weight", "relative_attention_bias.weight"};

static bool ends_with(const char *text, size_t length, const char *ending)
{
	const size_t size = strlen(ending);
	return length >= size && memcmp(text + length - size, ending, size) == 0;
}

static bool is_matrix(const struct smalti_tensor_view *tensor)
{
	const size_t length = strlen(tensor->name);
	bool matrix = tensor->rank >= 2 && ends_with(tensor->name, length, ".weight");
	for (size_t i = 0; i < COUNT_OF(tables); i++)
		matrix = matrix && !ends_with(tensor->name, length, tables[i]);
	return matrix;
}

static int add(struct smalti_known_modules *known, const struct smalti_known_module *module,
	       struct smalti_error *error)
{
	if (smalti_grow(&known->modules, known->count, sizeof(*known->modules), error) < 0)
		return -1;
	known->modules[known->count] = *module;
	known->modules[known->count].name = smalti_format(error, "%s", module->name);
	return known->modules[known->count++].name ? 0 : -1;
}

static int add_own(struct smalti_known_modules *known, const struct smalti_inventory *base, int component,
		   struct smalti_error *error)
{
	int status = 0;
	for (int i = 0; i < base->count && status == 0; i++) {
		const struct smalti_tensor_view *tensor = &base->tensors[i];
		char name[NAME_SIZE];
		snprintf(name, sizeof(name), "%.*s", (int)(strlen(tensor->name) - strlen(".weight")),
			 tensor->name);
		if (is_matrix(tensor))
			status = add(known,
				     &(struct smalti_known_module){
					 .name = name, .parts = {tensor}, .count = 1, .component = component},
				     error);
	}
	return status;
}

/* Writes a name of `research` for a block; tells whether it has one. */
static bool of_block(const char *name, int64_t block, const char *ending, char text[NAME_SIZE])
{
	const char *at = strstr(name, "%d");
	if (at)
		snprintf(text, NAME_SIZE, "%.*s%" PRId64 "%s%s", (int)(at - name), name, block, at + 2,
			 ending);
	else
		snprintf(text, NAME_SIZE, "%s%s", name, ending);
	return at;
}

/* Adds the modules of a row of `research`, of all blocks. */
static int add_research(struct smalti_known_modules *known, const struct smalti_inventory *base,
			int component, size_t row, struct smalti_error *error)
{
	bool more = true;
	int status = 0;
	for (int64_t block = 0; more && status == 0; block++) {
		char name[NAME_SIZE];
		struct smalti_known_module module = {.name = name, .component = component};
		for (; research[row].parts[module.count]; module.count++) {
			of_block(research[row].parts[module.count], block, ".weight", name);
			struct smalti_tensor_view key = {.name = name};
			module.parts[module.count] =
			    bsearch(&key, base->tensors, (size_t)base->count, sizeof(key), smalti_by_name);
			if (!module.parts[module.count])
				return 0;
		}
		more = of_block(research[row].name, block, "", name);
		status = add(known, &module, error);
	}
	return status;
}

int smalti_known_modules_list(struct smalti_known_modules *known, const struct smalti_adapter_base *base,
			      struct smalti_error *error)
{
	*known = (struct smalti_known_modules){0};
	int status = 0;
	for (int c = 0; c < SMALTI_ADAPTED_COMPONENTS && status == 0; c++) {
		status = add_own(known, base->tensors[c], c, error);
		for (size_t row = 0; row < COUNT_OF(research) && status == 0; row++)
			status = add_research(known, base->tensors[c], c, row, error);
	}
	return status;
}

void smalti_known_modules_free(struct smalti_known_modules *known)
{
	for (int64_t i = 0; i < known->count; i++)
		free(known->modules[i].name);
	free(known->modules);
}

bool smalti_adapter_split(const char *tensor, size_t *length, enum smalti_adapter_role *role)
{
	const size_t whole = strlen(tensor);
	for (size_t i = 0; i < COUNT_OF(endings); i++) {
		if (!ends_with(tensor, whole, endings[i].after))
			continue;
		size_t left = whole - strlen(endings[i].after);
		if (!ends_with(tensor, left, endings[i].ending) && endings[i].named)
			while (left > 0 && tensor[--left] != '.') /* without the adapter's name */
				;
		if (!ends_with(tensor, left, endings[i].ending))
			continue;
		*length = left - strlen(endings[i].ending);
		*role = endings[i].role;
		return true;
	}
	return false;
}

const char *smalti_adapter_unsupported(const char *tensor)
{
	for (size_t i = 0; i < COUNT_OF(unsupported); i++)
		if (strstr(tensor, unsupported[i].part))
			return unsupported[i].kind;
	return NULL;
}

static bool is_called(const char *module, bool flat, const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (module[i] != name[i] && !(flat && module[i] == '.' && name[i] == '_'))
			return false;
	return module[length] == 0;
}

/* Finds a module by a name without prefix. */
static int64_t find_bare(const struct smalti_known_modules *known, bool flat, const char *name, size_t length)
{
	for (int64_t i = 0; i < known->count; i++)
		if (is_called(known->modules[i].name, flat, name, length))
			return i;
	return -1;
}

static bool has_prefix(size_t i, const char *name, size_t length)
{
	const size_t size = strlen(prefixes[i].text);
	return length > size && memcmp(name, prefixes[i].text, size) == 0;
}

int64_t smalti_known_modules_find(const struct smalti_known_modules *known, const char *name, size_t length)
{
	int64_t found = -1;
	for (size_t i = 0; i < COUNT_OF(prefixes) && found < 0; i++) {
		const size_t size = strlen(prefixes[i].text);
		if (has_prefix(i, name, length))
			found = find_bare(known, prefixes[i].flat, name + size, length - size);
	}
	return found;
}

/* Counts the blocks that have the module of a name in which digits [first, last) are the block. */
static int64_t count_blocks(const struct smalti_known_modules *known, const char *name, size_t length,
			    size_t first, size_t last)
{
	char other[2 * NAME_SIZE];
	int64_t count = 0;
	for (bool found = true; found; count += found) {
		const int size = snprintf(other, sizeof(other), "%.*s%" PRId64 "%.*s", (int)first, name,
					  count, (int)(length - last), name + last);
		found =
		    size < (int)sizeof(other) && smalti_known_modules_find(known, other, (size_t)size) >= 0;
	}
	return count;
}

/* Returns how many bytes two names share at their ends. */
static size_t shared_bytes(const char *a, const char *b, size_t length)
{
	const size_t other = strlen(b), shorter = other < length ? other : length;
	size_t front = 0, back = 0;
	while (front < shorter && a[front] == b[front])
		front++;
	while (back < shorter - front && a[length - 1 - back] == b[other - 1 - back])
		back++;
	return front + back;
}

void smalti_known_modules_explain(const struct smalti_known_modules *known, const char *name, size_t length,
				  char *text, size_t size)
{
	size_t first = 0, last;
	while (first < length && !isdigit((unsigned char)name[first]))
		first++;
	for (last = first; last < length && isdigit((unsigned char)name[last]); last++)
		;
	const int64_t blocks =
	    first < length && length < NAME_SIZE ? count_blocks(known, name, length, first, last) : 0;
	if (blocks > 0) {
		snprintf(text, size, "it is for block %.*s, and the model has %" PRId64 " blocks",
			 (int)smalti_min((int64_t)(last - first), 20), name + first, blocks);
		return;
	}
	size_t prefix = 0, best = 0;
	for (size_t i = 0; i < COUNT_OF(prefixes); i++)
		if (has_prefix(i, name, length) && strlen(prefixes[i].text) > prefix)
			prefix = strlen(prefixes[i].text);
	const char *nearest = "nothing";
	for (int64_t i = 0; i < known->count; i++) {
		const size_t bytes = shared_bytes(name + prefix, known->modules[i].name, length - prefix);
		if (bytes > best) {
			best = bytes;
			nearest = known->modules[i].name;
		}
	}
	snprintf(text, size, "the nearest that the model has is %s", nearest);
}
