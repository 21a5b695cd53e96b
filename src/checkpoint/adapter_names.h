/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/adapter.h"

/* The names that adapters' files have for modules. */

/* The prefixes that peft gives to a module's name, and that PixArt's training script gives to peft's. */
#define SMALTI_PEFT_PREFIX   "base_model.model."
#define SMALTI_SCRIPT_PREFIX "unet." SMALTI_PEFT_PREFIX

enum { SMALTI_FUSED_PARTS = 3 };

/* A module as files may name it: a module of the base by its own name, or by the name of PixArt's research
 * code, in which q, k and v, or k and v, are one module whose rows are theirs in turn. */
struct smalti_known_module {
	char *name;
	const struct smalti_tensor_view *parts[SMALTI_FUSED_PARTS]; /* matrices of the base */
	int count, component;
};

struct smalti_known_modules {
	struct smalti_known_module *modules;
	int64_t count;
};

/* Lists all; free the list in any case. */
int smalti_known_modules_list(struct smalti_known_modules *known, const struct smalti_adapter_base *base,
			      struct smalti_error *error);
void smalti_known_modules_free(struct smalti_known_modules *known);

/* Says what an adapter's tensor is for. */
enum smalti_adapter_role {
	SMALTI_ADAPTER_A,
	SMALTI_ADAPTER_B,
	SMALTI_ADAPTER_ALPHA,
	SMALTI_ADAPTER_MAGNITUDE, /* peft's: by row */
	SMALTI_ADAPTER_SCALE,     /* LyCORIS' dora_scale: [out, 1], or [1, in] */
	SMALTI_ADAPTER_ROLES,
};

/* Splits a tensor's name into module, of *length bytes, and role; false if it has no ending of an adapter. */
bool smalti_adapter_split(const char *tensor, size_t *length, enum smalti_adapter_role *role);
/* Returns what kind of adapter is not supported that has such a tensor; NULL: none. */
const char *smalti_adapter_unsupported(const char *tensor);
/* Finds the module that the first `length` bytes of a tensor's name say; -1: none. */
int64_t smalti_known_modules_find(const struct smalti_known_modules *known, const char *name, size_t length);
/* Writes why there is no such module: a block that the model does not have, or the nearest name. */
void smalti_known_modules_explain(const struct smalti_known_modules *known, const char *name, size_t length,
				  char *text, size_t size);
