/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "checkpoint/config.h"

#include <stdlib.h>
#include <string.h>

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void try_transformer(const cJSON *file)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_transformer_config c;
	if (smalti_transformer_config_parse(file, &c, &error))
		return;
	require(c.layers > 0 && c.width == c.heads * c.head_dim && c.width % 4 == 0);
	require(c.sample_size % c.patch_size == 0 && c.in_channels > 0 && c.out_channels >= c.in_channels);
	require(c.interpolation_scale > 0 && c.norm_eps > 0 && c.caption_channels >= 0);
}

static void try_vae(const cJSON *file)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae_config c;
	if (smalti_vae_config_parse(file, &c, &error))
		return;
	require(c.blocks >= 1 && c.blocks <= SMALTI_VAE_MAX_BLOCKS && c.latent_channels > 0);
	for (int i = 0; i < c.blocks; i++)
		require(c.channels[i] > 0 && c.channels[i] % c.norm_groups == 0);
	require(c.scaling_factor > 0 && smalti_vae_factor(&c) >= 1);
}

static void try_t5(const cJSON *file)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_t5_config c;
	if (smalti_t5_config_parse(file, &c, &error))
		return;
	require(c.inner == c.heads * c.head_dim && c.inner > 0 && c.ff_width > 0 && c.vocabulary > 0);
	require(c.buckets % 2 == 0 && c.max_distance > c.buckets / 4 && c.eos_id < c.vocabulary);
}

static void try_schedulers(const cJSON *file)
{
	struct smalti_scheduler_config c;
	struct smalti_error error = SMALTI_NO_ERROR;
	smalti_scheduler_config_parse(file, NULL, &c, &error);
	for (int i = 0; i < SMALTI_SCHEDULERS; i++) {
		struct smalti_error other = SMALTI_NO_ERROR;
		if (smalti_scheduler_config_parse_as(file, (enum smalti_scheduler)i, &c, &other))
			continue;
		require(c.train_timesteps >= 2 && c.beta_start > 0 && c.beta_end >= c.beta_start);
		require(c.beta_end < 1 && c.solver_order >= 1 && c.solver_order <= 3 && c.steps_offset >= 0);
	}
}

/* Whatever the text, a parser either refuses it or gives numbers that later code can trust. */
FUZZER(data, size)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	cJSON *file = smalti_json_parse((const char *)data, size, &error);
	require(!file == (error.code != SMALTI_OK));
	if (cJSON_IsObject(file)) {
		struct smalti_error unused = SMALTI_NO_ERROR;
		struct smalti_model_index index;
		smalti_model_index_parse(file, &index, &unused);
		try_transformer(file);
		try_vae(file);
		try_t5(file);
		try_schedulers(file);
	}
	cJSON_Delete(file);
	return 0;
}
