/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiny models with weights by formula against what the reference classes computed of them
 * (docs/reference.md 9.1 to 9.3): shapes and options that the embedded model does not have. */
#include "harness.h"
#include "kernels/conditioning.h"
#include "stage.h"
#include "synthetic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct smalti_session *session;

/* As docs/reference.md 9 prints an array: count, sum, sum of absolute values, some elements. */
struct expected {
	const char *what;
	int64_t count;
	double sum, abs_sum; /* NAN: not given */
	struct {
		int64_t at;
		double value;
	} sample[8]; /* up to the first of value 0 */
};

static void near(double found, double expected, double tolerance, const char *what, const char *which,
		 int64_t number)
{
	char text[160];
	snprintf(text, sizeof(text), "%s, %s %lld: %.9g, expected %.9g within %.0e", what, which,
		 (long long)number, found, expected, tolerance);
	CHECK(fabs(found - expected) <= tolerance, text);
}

static void compare(const struct expected *e, const float *values, double tolerance, double sum_tolerance)
{
	double sum = 0, abs_sum = 0;
	for (int64_t i = 0; i < e->count; i++) {
		sum += values[i];
		abs_sum += fabs((double)values[i]);
	}
	near(sum, e->sum, sum_tolerance, e->what, "sum of", e->count);
	if (!isnan(e->abs_sum))
		near(abs_sum, e->abs_sum, sum_tolerance, e->what, "absolute sum of", e->count);
	for (int i = 0; i < 8 && e->sample[i].value != 0; i++)
		near(values[e->sample[i].at], e->sample[i].value, tolerance, e->what, "element",
		     e->sample[i].at);
}

static const double element = 2e-5, sums = 2e-3; /* tolerances of section 9 */

/* 9.1 */

enum { BATCH = 2, TEXT_TOKENS = 5, CAPTION_CHANNELS = 20, DIT_OUT = 8 };

static const struct smalti_transformer_config tiny_transformer = {
    .layers = 2,
    .heads = 3,
    .head_dim = 8,
    .width = 24,
    .in_channels = 4,
    .out_channels = DIT_OUT,
    .patch_size = 2,
    .sample_size = 8,
    .caption_channels = CAPTION_CHANNELS,
    .interpolation_scale = 2,
    .norm_eps = 1e-6,
    .attention_bias = true,
};

static const struct {
	bool conditions;
	int64_t height, width;
	struct expected out;
} transformer_cases[] = {
    {false,
     8,
     8,
     {"8×8",
      1024,
      3.29893637,
      1209.9769,
      {{0, 1.26048005},
       {1, 0.524279296},
       {2, 0.770602703},
       {341, 1.60080385},
       {512, -0.82767272},
       {1022, 1.1879828},
       {1023, 0.263218462}}}},
    {false,
     8,
     12,
     {"8×12",
      1536,
      4.74702378,
      1379.16031,
      {{0, -0.735961974},
       {1, -0.678079367},
       {2, -1.08419323},
       {512, 1.4604888},
       {768, 1.7438885},
       {1534, 1.09127665},
       {1535, 0.47818017}}}},
    {true,
     8,
     8,
     {"micro-conditions, 8×8",
      1024,
      -13.4022437,
      1081.43961,
      {{0, -0.0409943387},
       {1, -1.00809312},
       {2, 0.590206146},
       {341, 0.707899988},
       {512, -1.08131778},
       {1022, 0.0395326577},
       {1023, -2.01890707}}}},
    {true,
     8,
     12,
     {"micro-conditions, 8×12",
      1536,
      -35.467392,
      1472.65512,
      {{0, -1.25703263},
       {1, 1.72638464},
       {2, -1.09319007},
       {512, -0.644346654},
       {768, -1.03836131},
       {1534, 0.372124791},
       {1535, -2.13243699}}}},
};

static void transformer_case(struct smalti_denoiser *dit, int64_t height, int64_t width, int64_t band_tokens,
			     const struct expected *expected)
{
	static const int64_t valid[BATCH] = {2, 4}; /* text tokens that the mask leaves */
	const int64_t in = 4 * height * width, out = DIT_OUT * height * width;
	struct smalti_error error = SMALTI_NO_ERROR;
	float *x = malloc((size_t)(BATCH * in) * sizeof(*x)), *v = malloc((size_t)(BATCH * out) * sizeof(*v));
	float text[BATCH * TEXT_TOKENS * CAPTION_CHANNELS];
	if (!x || !v)
		abort();
	test_fill(x, BATCH * in, 0.11, 0.2);
	test_fill(text, BATCH * TEXT_TOKENS * CAPTION_CHANNELS, 0.07, 0.5);
	for (int64_t i = 0; i < BATCH; i++)
		SUCCEEDS(stage_dit(session, dit, x + i * in, height, width, 949,
				   text + i * TEXT_TOKENS * CAPTION_CHANNELS, valid[i], band_tokens, 8,
				   v + i * out, &error),
			 &error, expected->what);
	compare(expected, v, element, sums);
	free(x);
	free(v);
}

static void transformer(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int conditions = 0; conditions < 2; conditions++) {
		struct smalti_transformer_config config = tiny_transformer;
		config.additional_conditions = conditions;
		struct smalti_checkpoint *checkpoint = synthetic_transformer(&config, 0.15);
		CHECK(checkpoint && checkpoint->count == (conditions ? 65 : 57), "tensors");
		struct smalti_task_group *task_group = smalti_task_group_new(session, "weights", 0, &error);
		struct smalti_denoiser *dit =
		    smalti_dit_new(task_group, &config, checkpoint, SMALTI_F32, &error);
		SUCCEEDS(dit ? 0 : -1, &error, "transformer");
		static const int64_t bands[] = {256, 5, 1};
		for (size_t i = 0; i < COUNT(transformer_cases); i++)
			for (size_t b = 0; transformer_cases[i].conditions == conditions && b < 3; b++)
				transformer_case(dit, transformer_cases[i].height, transformer_cases[i].width,
						 bands[b], &transformer_cases[i].out);
		smalti_denoiser_free(dit);
		smalti_task_group_free(task_group);
		smalti_checkpoint_close(checkpoint);
	}
}

static void sinusoid(void)
{
	static const double tolerance = 3e-5; /* of f32 frequencies times 949 (docs/reference.md 3.3) */
	static const struct expected at_949 = {"sinusoid(949)",
					       SMALTI_SINUSOID_SIZE,
					       51.4963527,
					       NAN,
					       {{0, 0.97157079},
						{1, -0.947548985},
						{2, 0.270229071},
						{85, -0.499822497},
						{128, 0.236749262},
						{254, 0.109369546},
						{255, 0.101803586}}};
	static const struct {
		int at;
		double value;
	} at_999[] = {{0, 0.99964988},    {1, 0.96378529},    {2, -0.39902055},
		      {3, 0.70484155},    {127, 0.99424320},  {128, -0.02646075},
		      {129, -0.26667935}, {130, -0.91694200}, {255, 0.10714722}};
	float y[SMALTI_SINUSOID_SIZE];
	smalti_sinusoid(949, y);
	compare(&at_949, y, tolerance, sums);
	smalti_sinusoid(999, y);
	for (size_t i = 0; i < COUNT(at_999); i++)
		near(y[at_999[i].at], at_999[i].value, tolerance, "sinusoid(999)", "element", at_999[i].at);
}

/* The embedding of every patch, from the table of its two halves. */
static float *positions_of(int64_t rows, int64_t columns, int64_t dim, int64_t base, double scale)
{
	const int64_t half = dim / 2;
	float *table = malloc((size_t)((columns + rows) * half) * sizeof(*table));
	float *all = malloc((size_t)(rows * columns * dim) * sizeof(*all));
	if (!table || !all)
		abort();
	smalti_positions(columns, rows, dim, base, scale, table);
	for (int64_t n = 0; n < rows * columns; n++)
		for (int64_t d = 0; d < dim; d++) {
			int64_t row = d < half ? n % columns : columns + n / columns;
			all[n * dim + d] = table[row * half + d % half];
		}
	free(table);
	return all;
}

static void positions(void)
{
	enum { WIDE = 1152 };
	static const double exact = 1e-7;
	static const struct {
		int64_t rows, columns, dim, base;
		double sum_tolerance;
		struct expected out;
	} cases[] = {
	    {4, 4, 24, 4, 1e-5, {"4×4", 384, 204.306181, NAN, {{0}}}},
	    {4, 6, 24, 4, 1e-5, {"4×6", 576, 306.732942, NAN, {{192, 0.618369819}}}},
	    {64, 64, WIDE, 64, 1e-2, {"64×64", 64 * 64 * WIDE, 1974250.12, NAN, {{0}}}},
	    {44,
	     92,
	     WIDE,
	     64,
	     1e-2,
	     {"44×92",
	      44 * 92 * WIDE,
	      1951432.66,
	      NAN,
	      {{WIDE + 0, 0.34085488},
	       {WIDE + 1, 0.33054265},
	       {WIDE + 287, 3.5912948e-05},
	       {WIDE + 288, 0.94011593},
	       {WIDE + 289, 0.94379103},
	       {92 * WIDE + 576, 0.66483486},
	       {92 * WIDE + 577, 0.64756322},
	       {92 * WIDE + 864, 0.74699032}}}},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		float *all = positions_of(cases[i].rows, cases[i].columns, cases[i].dim, cases[i].base, 2);
		compare(&cases[i].out, all, exact, cases[i].sum_tolerance);
		free(all);
	}
}

/* 9.2 */

static void vae(void)
{
	static const struct smalti_vae_config config = {
	    .blocks = 2,
	    .channels = {8, 16},
	    .layers_per_block = 1,
	    .image_channels = 3,
	    .latent_channels = 4,
	    .norm_groups = 4,
	    .scaling_factor = 0.5, /* the latents are multiplied by it first, exactly */
	    .quant_conv = true,
	    .post_quant_conv = true,
	    .mid_block_attention = true,
	};
	static const struct expected decoded = {"decoded",
						1152,
						-124.762571,
						404.170583,
						{{0, -0.0491863862},
						 {1, 0.0354334787},
						 {2, 0.124656148},
						 {384, -0.0620157011},
						 {576, -0.108504646},
						 {1150, -0.286943495},
						 {1151, -0.204266205}}};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_checkpoint *checkpoint = synthetic_vae(&config, 0.1);
	CHECK(checkpoint && checkpoint->count == 124, "tensors");
	struct smalti_task_group *task_group = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_vae_net *decoder =
	    smalti_vae_net_new(SMALTI_VAE_DECODE, task_group, &config, checkpoint, SMALTI_F32, &error);
	SUCCEEDS(decoder ? 0 : -1, &error, "decoder");
	float z[4 * 8 * 12], image[1152];
	test_fill(z, 4 * 8 * 12, 0.3, 0.4);
	for (int i = 0; i < 4 * 8 * 12; i++)
		z[i] *= 0.5f;
	for (int64_t band_rows = 1; band_rows <= 8; band_rows++) {
		SUCCEEDS(stage_decode(session, decoder, z, 8, 12, band_rows, image, &error), &error,
			 "decode");
		compare(&decoded, image, element, sums);
	}
	smalti_vae_net_free(decoder);
	smalti_task_group_free(task_group);
	smalti_checkpoint_close(checkpoint);
}

/* 9.3: the padding is never computed, so of the whole [8, 16] only the rows of the 5 real tokens. */
static void t5(void)
{
	enum { TOKENS = 5, WIDTH = 16 };
	static const struct smalti_t5_config config = {
	    .layers = 2,
	    .vocabulary = 20,
	    .width = WIDTH,
	    .heads = 3,
	    .head_dim = 4,
	    .inner = 12,
	    .ff_width = 24,
	    .buckets = 32,
	    .max_distance = 128,
	    .norm_eps = 1e-6,
	    .pad_id = 0,
	    .eos_id = 1,
	};
	static const int32_t ids[TOKENS] = {5, 7, 2, 9, 1};
	static const struct expected encoded = {
	    "encoded",
	    TOKENS * WIDTH,
	    2.63030236,
	    NAN,
	    {{0, 0.79093856}, {1, 0.72662759}, {2, -1.4942875}, {42, 0.44361523}, {64, 1.1221013}}};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_checkpoint *checkpoint = synthetic_t5(&config, 0.2);
	CHECK(checkpoint && checkpoint->count == 21, "tensors");
	struct smalti_task_group *task_group = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_text_encoder *encoder =
	    smalti_t5_new(task_group, &config, checkpoint, SMALTI_F32, &error);
	SUCCEEDS(encoder ? 0 : -1, &error, "encoder");
	float y[TOKENS * WIDTH];
	SUCCEEDS(stage_t5(session, encoder, ids, TOKENS, y, &error), &error, "encode");
	compare(&encoded, y, element, sums);
	smalti_text_encoder_free(encoder);
	smalti_task_group_free(task_group);
	smalti_checkpoint_close(checkpoint);
}

static const struct test tests[] = {
    {"sinusoid", sinusoid},
    {"positions", positions},
    {"transformer", transformer},
    {"VAE decoder", vae},
    {"T5", t5},
};

TEST_PROGRAM()
{
	session = stage_session(NULL, 0);
	int status = test_main("tiny models by formula", tests, COUNT(tests));
	struct smalti_error error = SMALTI_NO_ERROR;
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
