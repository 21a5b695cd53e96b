/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/unused.h"
#include "graphs/tensors.h"

enum { NAMED = 3 };

/* Tensors of a whole T5, whose decoder is not used; the embedding a second time; tensors that torch computes
 * from the sizes. */
static const char *const harmless[][5] = {
    [SMALTI_TEXT_ENCODER] = {"decoder.", "dec.", "lm_head.", "encoder.embed_tokens.weight", NULL},
    [SMALTI_TRANSFORMER] = {"pos_embed.pos_embed", NULL},
    [SMALTI_VAE] = {NULL},
};

static bool is_harmless(const char *name, const char *const *prefixes)
{
	for (; *prefixes; prefixes++)
		if (strncmp(name, *prefixes, strlen(*prefixes)) == 0)
			return true;
	return strstr(name, "position_ids") != NULL;
}

static bool is_known(const char *name, const struct smalti_inventory *inventory)
{
	return bsearch(&name, inventory->tensors, (size_t)inventory->count, sizeof(*inventory->tensors),
		       smalti_by_name) != NULL;
}

void smalti_unused_say(struct smalti_error *note, const struct smalti_error *more)
{
	struct smalti_error whole = SMALTI_NO_ERROR;
	if (more->code == SMALTI_OK)
		return;
	smalti_fail(&whole, SMALTI_EUNSUPPORTED, "%s%s%s", note->message, note->message[0] ? "; " : "",
		    more->message);
	*note = whole;
}

static void say(const struct smalti_checkpoint *checkpoint, int64_t count, const char *names, bool lora,
		struct smalti_error *note)
{
	struct smalti_error line = SMALTI_NO_ERROR;
	smalti_fail(
	    &line, SMALTI_EUNSUPPORTED, "%.200s: %lld tensor%s not used: %s%s%s", checkpoint->directory,
	    (long long)count, count == 1 ? " is" : "s are", names, count > NAMED ? ", ..." : "",
	    lora ? "; merge LoRA weights into the model with peft's merge_and_unload() and save it" : "");
	smalti_unused_say(note, &line);
}

static void look(const struct smalti_checkpoint *checkpoint, const struct smalti_inventory *inventory,
		 const char *const *left, struct smalti_error *note)
{
	char names[NAMED * 100] = "";
	int64_t count = 0;
	bool lora = false;
	for (int64_t i = 0; i < checkpoint->count; i++) {
		const char *name = checkpoint->entries[i].view.name;
		if (checkpoint->entries[i].beside || is_known(name, inventory) || is_harmless(name, left))
			continue;
		if (count++ < NAMED)
			smalti_append(names, sizeof(names), ", ", "%.90s", name);
		lora = lora || strstr(name, "lora");
	}
	if (count)
		say(checkpoint, count, names, lora, note);
}

int smalti_unused_tensors(const struct smalti_checkpoint *checkpoint, enum smalti_component component,
			  const void *config, struct smalti_error *note, struct smalti_error *error)
{
	struct smalti_inventory inventory;
	if (smalti_component_tensors(&inventory, component, config, SMALTI_F32, error) < 0)
		return -1;
	look(checkpoint, &inventory, harmless[component], note);
	smalti_inventory_free(&inventory);
	return 0;
}
