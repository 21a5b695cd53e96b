/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/config.h"
#include "graphs/denoiser.h"
#include "graphs/vae/ends.h"
#include "jobs/prompt_encoder.h"
#include "jobs/unused.h"
#include "jobs/variants.h"
#include "rt/session.h"
#include "smalti/generate.h"
#include "smalti/model.h"

struct smalti_model {
	struct smalti_session *session;
	struct smalti_task_group *task_group; /* of the tasks that make weights */
	enum smalti_precision precision;
	struct smalti_prompt_encoder text;
	struct smalti_adapter_set *adapters; /* of all images; NULL: none */
	struct smalti_variants *variants;    /* with adapters of single requests */
	struct smalti_checkpoint *dit_checkpoint, *vae_checkpoint;
	struct smalti_denoiser *denoiser;             /* with the adapters */
	struct smalti_denoiser *base;                 /* without them, if they are not merged; else NULL */
	struct smalti_transformer_config transformer; /* from which it was made */
	struct smalti_vae_net *vae;                   /* the decoder */
	struct smalti_vae_net *encoder;               /* NULL: there is none, because of */
	struct smalti_error no_encoder;
	int64_t mapped_bytes; /* bytes of the files that have to be in memory under the session's limit */
	int64_t held_bytes;   /* bytes of the session's memory that others hold */
	char *words;          /* on which it was trained; NULL: not known */
	char *scheduler_path;
	char *step_cache_path; /* of tables, which may be missing */
	struct smalti_scheduler_config scheduler;
	struct smalti_error no_scheduler; /* why that scheduler cannot run, if so: requests name another */
	struct smalti_error unused;       /* says which tensors are not used, if any: no failure */
	char digest[SMALTI_DIGEST_LENGTH + 1];
};

/* What else uses the session of a model. */
struct smalti_model_company {
	int64_t held_bytes;              /* bytes of the session's memory that others hold */
	struct smalti_known_texts texts; /* if there are any, the model is asked for no other texts */
};

/* Opens a model like smalti_model_open(); `company` stays as long as the model. */
struct smalti_model *smalti_model_open_beside(struct smalti_session *session,
					      const struct smalti_model_options *options,
					      const struct smalti_model_company *company,
					      struct smalti_error *error);

/* Returns the directory of a component: the given one, or NAME below the pipeline's directory. For free(). */
char *smalti_model_component(const char *given, const char *directory, const char *name,
			     struct smalti_error *error);

/* Returns the pixels of a latent's side. */
int64_t smalti_model_factor(const struct smalti_model *model);

/* Texts as the transformer reads them. Each is encoded once while it is used or was used lately: above all
 * the empty negative prompt. Only the thread that inserts tasks uses them. */
struct smalti_texts;

/* A text of one token sequence; its encoding may still be running. */
struct smalti_text {
	struct smalti_task_group *task_group; /* fails with the encoding; readers of the caption need it */
	struct smalti_cross_cache *cache;
	int64_t tokens;
};

/* Makes texts, whose encodings fail when `task_group` does. */
struct smalti_texts *smalti_texts_new(struct smalti_model *model, struct smalti_task_group *task_group,
				      struct smalti_error *error);
/* Frees the texts, after the last task that reads a caption was inserted. NULL is allowed. */
void smalti_texts_free(struct smalti_texts *texts);

enum { SMALTI_TEXTS_TOGETHER = 2 };

/* Asks for the features of texts. */
struct smalti_text_request {
	const char *const *prompts;
	int count; /* up to SMALTI_TEXTS_TOGETHER */
	enum smalti_cleaning cleaning;
	const struct smalti_strategy *strategy; /* over whose places they are encoded */
	struct smalti_variant *variant;         /* whose transformer reads them; NULL: the model's */
	int64_t priority;
};

/* Prepares and tokenizes the prompts, and inserts the tasks that encode the missing ones, together. found[i]
 * is the text of prompts[i]. Give each back; after a failure there are none. */
int smalti_texts_get(struct smalti_texts *texts, const struct smalti_text_request *request,
		     const struct smalti_text **found, struct smalti_error *error);
/* Returns the bytes of the captions that are kept and not in use, or forgets these captions. */
int64_t smalti_texts_unused_bytes(const struct smalti_texts *texts);
void smalti_texts_drop_unused(struct smalti_texts *texts);
/* Tells whether any text has failed here, or has all encoded again: ranks have to agree on the known texts.
 * @{ */
bool smalti_texts_any_failed(const struct smalti_texts *texts);
void smalti_texts_forget(struct smalti_texts *texts);
/* @} */
void smalti_text_put(struct smalti_texts *texts, const struct smalti_text *text);
