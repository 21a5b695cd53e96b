/* SPDX-License-Identifier: Apache-2.0
 *
 * The loss of training against the reference in double (tests/data/train/README.md).
 */
#include "base/json.h"
#include "golden.h"
#include "harness.h"
#include "samplers/diffusion_loss.h"

#include <math.h>

enum { T = SMALTI_TRAINING_TIMESTEPS, CASES = 5, COUNT_OF_LATENT = 4 * 4 * 6 };

static struct smalti_safetensors *golden;

static const struct smalti_tensor_view *tensor(const char *name)
{
	if (!golden)
		golden = golden_open("train/diffusion.safetensors");
	const struct smalti_tensor_view *view = smalti_safetensors_find(golden, name);
	CHECK(view != NULL, name);
	if (!view)
		abort();
	return view;
}

/* Values of the tensor from `first` on, for free(). */
static void *values(const char *name, int64_t first, int64_t count, size_t size)
{
	void *copy = malloc((size_t)count * size);
	if (!copy)
		abort();
	memcpy(copy, (const char *)tensor(name)->data + (size_t)first * size, (size_t)count * size);
	return copy;
}

static double far(double found, double expected)
{
	return fabs(found - expected) / fmax(fabs(expected), 1e-300);
}

static void tables_are_those_of_the_reference(void)
{
	static const struct {
		const char *name;
		size_t offset;
	} tables[] = {
#define TABLE(name, member) {"table." name, offsetof(struct smalti_noise_level, member)}
	    TABLE("beta", beta),
	    TABLE("log_beta", log_beta),
	    TABLE("alphas_cumprod", alpha_bar),
	    TABLE("posterior_variance", variance),
	    TABLE("posterior_log_variance_clipped", log_variance),
	    TABLE("posterior_mean_coef1", x0_factor),
	    TABLE("posterior_mean_coef2", xt_factor),
	};
	for (int i = 0; i < COUNT(tables); i++) {
		double *expected = values(tables[i].name, 0, T, sizeof(double));
		double max = 0;
		for (int t = 0; t < T; t++) {
			double found;
			memcpy(&found, (const char *)smalti_noise_level(t) + tables[i].offset, sizeof(found));
			max = fmax(max, found == expected[t] ? 0 : far(found, expected[t]));
		}
		CHECK(max <= 1e-12, tables[i].name);
		free(expected);
	}
}

static void latents_get_their_noise(void)
{
	int64_t *t = values("t", 0, CASES, sizeof(*t));
	for (int i = 0; i < CASES; i++) {
		float *x0 = values("x0", (int64_t)i * COUNT_OF_LATENT, COUNT_OF_LATENT, sizeof(*x0));
		float *noise = values("noise", (int64_t)i * COUNT_OF_LATENT, COUNT_OF_LATENT, sizeof(*noise));
		double *expected =
		    values("x_t", (int64_t)i * COUNT_OF_LATENT, COUNT_OF_LATENT, sizeof(*expected));
		float found[COUNT_OF_LATENT];
		double max = 0, largest = 0;
		smalti_add_noise(t[i], COUNT_OF_LATENT, x0, noise, found);
		for (int k = 0; k < COUNT_OF_LATENT; k++) {
			max = fmax(max, fabs(found[k] - expected[k]));
			largest = fmax(largest, fabs(expected[k]));
		}
		CHECK(max <= 4e-7 * largest, "x_t");
		free(x0);
		free(noise);
		free(expected);
	}
	free(t);
}

static void check_loss(int i, const struct smalti_diffusion_loss *loss)
{
	const int64_t n = COUNT_OF_LATENT, output_count = 2 * n;
	/* the last is of tails, where the reference itself is uncertain */
	const double tolerance = i == CASES - 1 ? 1e-5 : 1e-9;
	float *x0 = values("x0", i * n, n, sizeof(*x0)), *noise = values("noise", i * n, n, sizeof(*noise));
	float *output = values("out", i * output_count, output_count, sizeof(*output));
	double *expected = values("dout", i * output_count, output_count, sizeof(*expected));
	double *mse = values("mse", i, 1, sizeof(*mse)), *vb = values("vb", i, 1, sizeof(*vb));
	float gradient[2 * COUNT_OF_LATENT];
	const struct smalti_loss_parts found = smalti_diffusion_loss(loss, x0, noise, output, gradient);
	double max = 0, largest = 0;
	for (int64_t k = 0; k < output_count; k++) {
		const double scaled = expected[k] * loss->scale * (k < n ? loss->weight : 1);
		const double wanted = k < n || loss->learns_variance ? scaled : 0;
		max = fmax(max, fabs(gradient[k] - wanted));
		largest = fmax(largest, fabs(wanted));
	}
	CHECK(far(found.mse, *mse) <= tolerance, "mse");
	CHECK(loss->learns_variance ? far(found.vb, *vb) <= tolerance : found.vb == 0, "vb");
	CHECK(max <= (tolerance + 1e-7) * largest, "gradient"); /* which is rounded to f32 */
	const struct smalti_loss_parts alone = smalti_diffusion_loss(loss, x0, noise, output, NULL);
	CHECK(memcmp(&alone, &found, sizeof(found)) == 0, "the same without a gradient");
	free(x0);
	free(noise);
	free(output);
	free(expected);
	free(mse);
	free(vb);
}

static void loss_is_that_of_the_reference(void)
{
	static const struct smalti_diffusion_loss cases[] = {
	    {.has_variance = true, .learns_variance = true, .weight = 1, .scale = 1},
	    {.has_variance = true, .learns_variance = true, .weight = 0.25, .scale = 1. / 3},
	    {.has_variance = true, .weight = 1, .scale = 65536},
	};
	int64_t *t = values("t", 0, CASES, sizeof(*t));
	for (int k = 0; k < COUNT(cases); k++)
		for (int i = 0; i < CASES; i++) {
			struct smalti_diffusion_loss loss = cases[k];
			loss.t = t[i];
			loss.count = COUNT_OF_LATENT;
			check_loss(i, &loss);
		}
	free(t);
}

static void output_without_variance_has_no_bound(void)
{
	const struct smalti_diffusion_loss loss = {
	    .t = 7, .count = 2, .learns_variance = true, .weight = 2, .scale = 3};
	const float x0[] = {0, 0}, noise[] = {1, 2}, output[] = {2, 0};
	float gradient[3] = {0, 0, 42};
	const struct smalti_loss_parts parts = smalti_diffusion_loss(&loss, x0, noise, output, gradient);
	CHECK(parts.mse == 2.5 && parts.vb == 0, "mean of 1 and 4");
	CHECK(gradient[0] == 6 && gradient[1] == -12 && gradient[2] == 42, "gradient");
}

static void weights_are_min_snr(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	cJSON *file = smalti_json_read(test_data("train/diffusion.json"), 1 << 20, &error);
	SUCCEEDS(file ? 0 : -1, &error, "diffusion.json");
	const cJSON *of_gamma, *weight;
	int checked = 0;
	cJSON_ArrayForEach (of_gamma, cJSON_GetObjectItem(file, "min_snr"))
		cJSON_ArrayForEach (weight, of_gamma) {
			const double found = smalti_min_snr(atoi(weight->string), atof(of_gamma->string));
			CHECK(far(found, weight->valuedouble) <= 1e-12, weight->string);
			checked++;
		}
	CHECK(checked == 18, "weights in the file");
	CHECK(smalti_min_snr(0, 0) == 1, "off");
	cJSON_Delete(file);
}

TEST_PROGRAM()
{
	static const struct test tests[] = {
	    {"tables are those of the reference", tables_are_those_of_the_reference},
	    {"latents get their noise", latents_get_their_noise},
	    {"loss is that of the reference", loss_is_that_of_the_reference},
	    {"output without variance has no bound", output_without_variance_has_no_bound},
	    {"weights are min-SNR", weights_are_min_snr},
	};
	const int status = test_main("diffusion loss", tests, COUNT(tests));
	smalti_safetensors_close(golden);
	return status;
}
