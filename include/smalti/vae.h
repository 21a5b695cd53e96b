/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <smalti/model.h>
#include <stdbool.h>

/** @file
 * Decodes latents to images and encodes images to the distribution of their latents with a pipeline's VAE
 * (AutoencoderKL). Both directions compute layer by layer over tiles of rows, exactly: another tile height
 * changes results only by rounding; another scheduling policy, memory limit or number of workers does not
 * change them at all. Images are streamed in rows and are never whole in memory.
 *
 * Threads: one at a time decodes or encodes in a session; any may cancel.
 */

SMALTI_BEGIN_DECLS

struct smalti_vae;

struct smalti_vae_options {
	const char *
	    directory; /**< of a pipeline in diffusers' layout, or of a VAE alone; NULL: the embedded model */
	const char *variant; /**< of the weight file ("fp16"); NULL: the plain one */
	enum smalti_precision precision;
};

/** All fields at their defaults. */
void smalti_vae_defaults(struct smalti_vae_options *options);

/** Reads the configuration and maps the weights; decoder and encoder are checked when first used, as a file
 * may hold only one of them. The session outlives the VAE. `options` NULL: the defaults. NULL with
 * SMALTI_EIO, SMALTI_EFORMAT or SMALTI_EUNSUPPORTED and a message that names the file and the key. */
struct smalti_vae *smalti_vae_open(struct smalti_session *session, const struct smalti_vae_options *options,
				   struct smalti_error *error);
/** NULL is allowed. */
void smalti_vae_close(struct smalti_vae *vae);

struct smalti_vae_info {
	int64_t latent_channels; /**< of the latents */
	int64_t latent_pixels;   /**< along each side of the image, to one latent */
	double scaling_factor; /**< the diffusion model's latents are the VAE's, times this; where config.json
				  has a shift_factor, or latents_mean and latents_std, the VAE's less the
				  shift or mean, divided by the std, times this, as in diffusers */
	const char *unused;    /**< a line about tensors of the file that are not used, for a user; NULL:
				  none; lives as long as the VAE */
};
void smalti_vae_info(const struct smalti_vae *vae, struct smalti_vae_info *info);

/** The data type of an image's samples. */
enum smalti_samples {
	SMALTI_SAMPLES_U8,  /**< round_half_even(clamp(x/2 + 1/2, 0, 1)·255), as diffusers */
	SMALTI_SAMPLES_U16, /**< the same with 65535, in the machine's byte order */
	SMALTI_SAMPLES_F32  /**< x itself: about [-1, 1], not clamped */
};

/** What decoding and encoding have in common. Pointers are the caller's and not kept. */
struct smalti_vae_request {
	int64_t height, width; /**< of the image: multiples of latent_pixels, SMALTI_SIDE_MAX at most */
	int64_t tile_rows;     /**< latent rows per tile; 0: chosen by size, memory and workers */
	const char *scratch;   /**< directory for what does not fit into memory; NULL: none */
	const char *shares;    /**< of the rows, of the CPUs and of each device, as "0:2:1"; "auto": of the
				  devices by their speed; NULL: the scheduling policy places each task */
	enum smalti_precision
	    store;  /**< F32 or BF16: maps may be rounded to bf16 where memory is short: less of it,
		       or less time, for results that are not exact and depend on the memory */
	void *user; /**< of the functions */
	/** Progress callback, or NULL: called about ten times per second on the calling thread with the
	 * completed fraction of the floating-point operations, 0 to 1. */
	void (*on_progress)(void *user, double share);
};

/** One latent to decode. */
struct smalti_vae_decoding {
	struct smalti_vae_request request;
	const float *latents; /**< [latent_channels, height/latent_pixels, width/latent_pixels], all finite */
	bool raw;             /**< latents are the VAE's own; else the diffusion model's (smalti_vae_info) */
	enum smalti_samples samples;
	/** Rows first … first + count − 1 of the image, in order: RGB, `width` pixels each, of the type that
	 * `samples` names. On any thread, one call at a time. Non-zero fails the decoding with the error that
	 * was left. */
	int (*rows)(void *user, int64_t first, int64_t count, const void *rgb, struct smalti_error *error);
};

/** Decodes it and returns when the last row was taken. -1 with SMALTI_EINVAL (an extent, or a value that is
 * not finite, which is named), SMALTI_EFORMAT (no decoder in the file), SMALTI_ENOMEM (it does not fit under
 * the session's limit), SMALTI_ECORRUPT (the decoder gave what is not finite), SMALTI_ECANCELLED, or what
 * `rows` left. One thread at a time decodes or encodes in a session. */
int smalti_vae_decode_image(struct smalti_vae *vae, const struct smalti_vae_decoding *decoding,
			    struct smalti_error *error);

/** One image to encode. */
struct smalti_vae_encoding {
	struct smalti_vae_request request;
	/** Fills in rows first … first + count − 1, in order: RGB in [-1, 1] (x/127.5 − 1 of bytes), `width`
	 * pixels each. On any thread, one call at a time. Non-zero fails the encoding with the error that was
	 * left. */
	int (*rows)(void *user, int64_t first, int64_t count, float *rgb, struct smalti_error *error);
	/** Results [latent_channels, height/latent_pixels, width/latent_pixels]: of each latent the mean and
	 * the standard deviation exp(clamp(logvar, −30, 20)/2), unscaled. @{ */
	float *mean, *std;
	/** @} */
};

/** Encodes it and returns when mean and std are complete. -1 as smalti_vae_decode_image(). */
int smalti_vae_encode_image(struct smalti_vae *vae, const struct smalti_vae_encoding *encoding,
			    struct smalti_error *error);

/** How the VAE stores a feature map, the output of one layer. */
struct smalti_vae_map {
	const char *layer;               /**< name of the layer in the checkpoint, or "input" */
	int64_t height, width, channels; /**< f32 */
	const char *storage; /**< "keep", "keep bf16", "offload" to the scratch directory, or "recompute" when
				it is read */
	int64_t times;       /**< how often it is computed */
	double flops;        /**< to compute it once */
};

/** Estimated resources for decoding or encoding an image. */
struct smalti_vae_estimate {
	int64_t tile_rows; /**< latent rows per tile */
	int64_t memory;    /**< bytes resident at most: the program, weights, and what the plan holds */
	int64_t scratch;   /**< bytes in the scratch directory at most */
	double flops;      /**< of all that is computed */
	double min_flops;  /**< if every feature map were computed once */
	double seconds;    /**< at the speeds that this machine showed in a short trial of each layer */
	int64_t count;
	struct smalti_vae_map *maps; /**< `count`; freed by smalti_vae_estimate_free() */
};

/** Makes the plan that decoding or encoding would use; computes nothing and calls no function of the request.
 * -1 with SMALTI_EINVAL, or SMALTI_ENOMEM and a message with the memory that is needed. The VAE outlives the
 * estimate. @{ */
int smalti_vae_estimate_decoding(struct smalti_vae *vae, const struct smalti_vae_request *request,
				 struct smalti_vae_estimate *estimate, struct smalti_error *error);
int smalti_vae_estimate_encoding(struct smalti_vae *vae, const struct smalti_vae_request *request,
				 struct smalti_vae_estimate *estimate, struct smalti_error *error);
/** @} */
void smalti_vae_estimate_free(struct smalti_vae_estimate *estimate);

/** Draws latents in the diffusion model's scale, from the VAE's mean + std·noise, where the noise is that of
 * one torch.randn() of `count` values after manual_seed(seed). For a batch of images `count` spans all of
 * them; `plane` (1 or more) of the values, height·width of the latents, are one channel of one image.
 * `latents` overlaps neither of the others. */
void smalti_vae_sample(const struct smalti_vae *vae, int64_t count, int64_t plane, const float *mean,
		       const float *std, uint64_t seed, float *latents);

/** Cancels: the current call and all later ones fail with SMALTI_ECANCELLED as soon as the running tasks have
 * ended. Only sets a flag: any thread and a signal handler may call it. */
void smalti_vae_cancel(struct smalti_vae *vae);

SMALTI_END_DECLS
