/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/tensors.h"

#include "graphs/dit.h"
#include "graphs/t5.h"
#include "graphs/vae_net.h"

/* Runs a loader over a checkpoint that has whatever is asked for. */
typedef int run_loader(const void *config, const struct smalti_checkpoint *checkpoint,
		       struct smalti_error *error);

static int list(run_loader *load, const void *config, enum smalti_dtype dtype,
		struct smalti_inventory *inventory, struct smalti_error *error)
{
	*inventory = (struct smalti_inventory){0};
	struct smalti_checkpoint *checkpoint = smalti_checkpoint_record(inventory, dtype, error);
	const int status = checkpoint ? load(config, checkpoint, error) : -1;
	smalti_checkpoint_close(checkpoint);
	if (status < 0)
		smalti_inventory_free(inventory);
	smalti_inventory_sort(inventory);
	return status;
}

static int load_t5(const void *config, const struct smalti_checkpoint *checkpoint, struct smalti_error *error)
{
	struct smalti_text_encoder *t5 = smalti_t5_new(NULL, config, checkpoint, SMALTI_F32, error);
	smalti_text_encoder_free(t5);
	return t5 ? 0 : -1;
}

static int load_dit(const void *config, const struct smalti_checkpoint *checkpoint,
		    struct smalti_error *error)
{
	struct smalti_denoiser *dit = smalti_dit_new(NULL, config, checkpoint, SMALTI_F32, error);
	smalti_denoiser_free(dit);
	return dit ? 0 : -1;
}

static int load_vae(const void *config, const struct smalti_checkpoint *checkpoint,
		    struct smalti_error *error)
{
	int status = 0;
	for (int direction = 0; direction < SMALTI_VAE_DIRECTIONS && status == 0; direction++) {
		struct smalti_vae_net *net = smalti_vae_net_new((enum smalti_vae_direction)direction, NULL,
								config, checkpoint, SMALTI_F32, error);
		smalti_vae_net_free(net);
		status = net ? 0 : -1;
	}
	return status;
}

int smalti_t5_tensors(struct smalti_inventory *inventory, const struct smalti_t5_config *config,
		      enum smalti_dtype dtype, struct smalti_error *error)
{
	return list(load_t5, config, dtype, inventory, error);
}

int smalti_transformer_tensors(struct smalti_inventory *inventory,
			       const struct smalti_transformer_config *config, enum smalti_dtype dtype,
			       struct smalti_error *error)
{
	return list(load_dit, config, dtype, inventory, error);
}

int smalti_vae_tensors(struct smalti_inventory *inventory, const struct smalti_vae_config *config,
		       enum smalti_dtype dtype, struct smalti_error *error)
{
	return list(load_vae, config, dtype, inventory, error);
}
