/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/tensors.h"
#include "graphs/pixart/dit.h"
#include "graphs/t5/t5.h"
#include "graphs/vae/net.h"

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

/* Runs the loader over a checkpoint that has every tensor. */
int smalti_component_tensors(struct smalti_inventory *inventory, enum smalti_component component,
			     const void *config, enum smalti_dtype dtype, struct smalti_error *error)
{
	static int (*const loaders[])(const void *config, const struct smalti_checkpoint *checkpoint,
				      struct smalti_error *error) = {load_t5, load_dit, load_vae};
	*inventory = (struct smalti_inventory){0};
	struct smalti_checkpoint *checkpoint = smalti_checkpoint_record(inventory, dtype, error);
	const int status = checkpoint ? loaders[component](config, checkpoint, error) : -1;
	smalti_checkpoint_close(checkpoint);
	if (status < 0)
		smalti_inventory_free(inventory);
	smalti_inventory_sort(inventory);
	return status;
}
