/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/precision.h"

#include <math.h>

const char *const smalti_precisions[] = {[SMALTI_PRECISION_F32] = "f32",
					 [SMALTI_PRECISION_BF16] = "bf16",
					 [SMALTI_PRECISION_F16] = "f16",
					 [SMALTI_PRECISION_TF32] = "tf32",
					 [SMALTI_PRECISION_W8A8] = "w8a8",
					 [SMALTI_PRECISION_W8A8_BF16] = "w8a8-bf16",
					 NULL};

enum smalti_precision smalti_precision_of_rest(enum smalti_precision precision)
{
	if (precision == SMALTI_PRECISION_W8A8_BF16)
		return SMALTI_PRECISION_BF16;
	return precision == SMALTI_PRECISION_W8A8 ? SMALTI_PRECISION_F32 : precision;
}

bool smalti_precision_is_w8a8(enum smalti_precision precision)
{
	return smalti_precision_of_rest(precision) != precision;
}

void smalti_text_encoder_choose(enum smalti_text_encoder_precision precision,
				struct smalti_checkpoint *checkpoint)
{
	checkpoint->wants_int8 = precision != SMALTI_TEXT_ENCODER_STORED;
	checkpoint->wants_w8a8 = precision == SMALTI_TEXT_ENCODER_W8A8;
}

const char *const smalti_text_encoder_precisions[] = {[SMALTI_TEXT_ENCODER_STORED] = "stored",
						      [SMALTI_TEXT_ENCODER_INT8] = "int8",
						      [SMALTI_TEXT_ENCODER_W8A8] = "w8a8",
						      NULL};

int smalti_precision_check(enum smalti_precision precision, enum smalti_precision last,
			   struct smalti_error *error)
{
	char names[64] = "";
	if (precision <= last || precision > SMALTI_PRECISION_W8A8_BF16)
		return smalti_check_range((int)precision, 0, last, "precision", error);
	for (int i = 0; i <= (int)last; i++)
		smalti_append(names, sizeof(names), ", ", "%s", smalti_precisions[i]);
	return smalti_fail(error, SMALTI_EINVAL, "precision: expected one of %s, found %s", names,
			   smalti_precisions[precision]);
}

int smalti_precision_choose(enum smalti_precision precision, struct smalti_session *session,
			    struct smalti_error *error)
{
	const bool tf32 = precision == SMALTI_PRECISION_TF32;
	if (smalti_precision_is_w8a8(precision))
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "precision %s: it is of the transformer that generates images alone",
				   smalti_precisions[precision]);
	if (smalti_check_range((int)precision, 0, SMALTI_PRECISION_TF32, "precision", error) < 0)
		return -1;
	if (tf32 && !(session && smalti_devices_have(&session->device_counts, SMALTI_DEVICES_TF32)))
		return smalti_fail(
		    error, SMALTI_EUNSUPPORTED,
		    "precision tf32: only CUDA devices have it, and there is none: choose f32, "
		    "which is more exact, or bf16 or f16");
	return session ? smalti_session_choose_tf32(session, tf32, error) : 0;
}

enum smalti_dtype smalti_precision_dtype(enum smalti_precision precision)
{
	static const enum smalti_dtype dtypes[] = {[SMALTI_PRECISION_F32] = SMALTI_F32,
						   [SMALTI_PRECISION_BF16] = SMALTI_BF16,
						   [SMALTI_PRECISION_F16] = SMALTI_F16,
						   [SMALTI_PRECISION_TF32] = SMALTI_F32};
	return dtypes[smalti_precision_of_rest(precision)];
}

enum smalti_dtype smalti_precision_vae_dtype(enum smalti_precision precision,
					     const struct smalti_vae_config *config)
{
	const enum smalti_dtype dtype = smalti_precision_dtype(precision);
	return dtype == SMALTI_F16 && config->force_upcast ? SMALTI_F32 : dtype;
}

/* Names the given latents as another possible cause. */
static void blame_latents(const struct smalti_maker *maker, char text[96])
{
	float largest = 0;
	text[0] = '\0';
	if (!maker->latents)
		return;
	for (int64_t i = 0; i < maker->latents_count; i++)
		largest = fmaxf(largest, fabsf(maker->latents[i]));
	snprintf(text, 96, "; or the latents, with values up to %.3g, are too large", (double)largest);
}

int smalti_precision_check_made(int64_t count, const float *values, const struct smalti_maker *maker,
				struct smalti_error *error)
{
	static const char *const causes[] = {
	    [SMALTI_F32] = "the model's weights are damaged",
	    [SMALTI_F16] = "it has none beyond 65504, so choose the precision bf16 or f32; if it is the same "
			   "then, the model's weights are damaged",
	    [SMALTI_BF16] = "the model's weights are damaged, or were not trained for this precision: choose "
			    "f32 to know",
	};
	int64_t bad = 0;
	char latents[96];
	for (int64_t i = 0; i < count; i++)
		bad += !isfinite(values[i]);
	if (bad == 0)
		return 0;
	blame_latents(maker, latents);
	return smalti_fail(error, SMALTI_ECORRUPT,
			   "the %s gave %" PRId64 " values that are not finite, computing in %s: %s%s",
			   maker->model, bad, smalti_dtype_name(maker->compute), causes[maker->compute],
			   latents);
}
