/* SPDX-License-Identifier: Apache-2.0
 *
 * The T5 encoder where its layers are cut into shards that nothing divides, where captions share a band, and
 * where the memory of its weights is given back. */
#include "harness.h"
#include "kernels/conditioning.h"
#include "stage.h"
#include "synthetic.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct smalti_session *session;

struct encoder {
	struct smalti_t5_config config;
	struct smalti_checkpoint *checkpoint;
	struct smalti_task_group *task_group;
	struct smalti_text_encoder *t5;
};

static struct encoder open_encoder(const struct smalti_t5_config *config,
				   struct smalti_checkpoint *checkpoint, enum smalti_dtype compute)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct encoder encoder = {*config, checkpoint, smalti_task_group_new(session, "weights", 0, &error),
				  NULL};
	encoder.t5 = smalti_t5_new(encoder.task_group, config, checkpoint, compute, &error);
	SUCCEEDS(encoder.t5 ? 0 : -1, &error, "encoder");
	return encoder;
}

static void close_encoder(struct encoder *encoder)
{
	smalti_text_encoder_free(encoder->t5);
	smalti_task_group_free(encoder->task_group);
	smalti_checkpoint_close(encoder->checkpoint);
}

static struct encoder tesserae(enum smalti_dtype compute)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_t5_config config;
	SUCCEEDS(smalti_t5_config_read(test_model("tesserae/text_encoder/config.json"), &config, &error),
		 &error, "configuration");
	struct smalti_checkpoint *checkpoint =
	    smalti_checkpoint_open(test_model("tesserae/text_encoder"), SMALTI_STEM_T5, NULL, &error);
	SUCCEEDS(checkpoint ? 0 : -1, &error, "checkpoint");
	return open_encoder(&config, checkpoint, compute);
}

/* The encoder by its formulas (docs/reference.md 2.2), in double. */

static double *doubles(int64_t count)
{
	double *values = calloc((size_t)count, sizeof(*values));
	if (!values)
		abort();
	return values;
}

/* Of a layer, or (layer −1) of the whole. */
static float *weights(const struct encoder *encoder, int64_t rows, int64_t columns, int layer,
		      const char *part)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tensor_view view;
	char name[128];
	const int64_t shape[2] = {rows, columns}, count = rows * (columns ? columns : 1);
	if (layer < 0)
		snprintf(name, sizeof(name), "%s", part);
	else
		snprintf(name, sizeof(name), "encoder.block.%d.%s", layer, part);
	SUCCEEDS(smalti_checkpoint_find(encoder->checkpoint, name, columns ? 2 : 1, shape, &view, &error),
		 &error, name);
	float *values = malloc((size_t)count * sizeof(*values));
	if (!values)
		abort();
	smalti_widen(view.dtype, view.data, count, values);
	return values;
}

/* y [rows, out] = x·Wᵀ */
static double *multiply(const struct encoder *encoder, const double *x, int64_t rows, int64_t in, int64_t out,
			int layer, const char *part)
{
	float *w = weights(encoder, out, in, layer, part);
	double *y = doubles(rows * out);
	for (int64_t i = 0; i < rows * out; i++)
		for (int64_t k = 0; k < in; k++)
			y[i] += x[i / out * in + k] * (double)w[i % out * in + k];
	free(w);
	return y;
}

static double *normalize(const struct encoder *encoder, const double *x, int64_t rows, int layer,
			 const char *part)
{
	const int64_t width = encoder->config.width;
	float *w = weights(encoder, width, 0, layer, part);
	double *y = doubles(rows * width);
	for (int64_t row = 0; row < rows; row++) {
		double squares = 0;
		for (int64_t i = 0; i < width; i++)
			squares += x[row * width + i] * x[row * width + i];
		for (int64_t i = 0; i < width; i++)
			y[row * width + i] = x[row * width + i] * (double)w[i] /
					     sqrt(squares / (double)width + encoder->config.norm_eps);
	}
	free(w);
	return y;
}

static void add(double *x, double *y, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		x[i] += y[i];
	free(y);
}

/* All rows attend to the first `keys`. */
static void attend(const struct encoder *encoder, double *x, int64_t rows, int64_t keys, int layer)
{
	const struct smalti_t5_config *c = &encoder->config;
	float *table =
	    weights(encoder, c->buckets, c->heads, 0, "layer.0.SelfAttention.relative_attention_bias.weight");
	double *h = normalize(encoder, x, rows, layer, "layer.0.layer_norm.weight");
	double *q = multiply(encoder, h, rows, c->width, c->inner, layer, "layer.0.SelfAttention.q.weight");
	double *k = multiply(encoder, h, rows, c->width, c->inner, layer, "layer.0.SelfAttention.k.weight");
	double *v = multiply(encoder, h, rows, c->width, c->inner, layer, "layer.0.SelfAttention.v.weight");
	double *o = doubles(rows * c->inner);
	for (int64_t head = 0; head < c->heads; head++)
		for (int64_t i = 0; i < rows; i++) {
			double total = 0, *to = o + i * c->inner + head * c->head_dim;
			for (int64_t j = 0; j < keys; j++) {
				const int64_t bucket =
				    smalti_relative_bucket(j - i, c->buckets, c->max_distance);
				double score = (double)table[bucket * c->heads + head];
				for (int64_t d = head * c->head_dim; d < (head + 1) * c->head_dim; d++)
					score += q[i * c->inner + d] * k[j * c->inner + d];
				const double weight = exp(score);
				total += weight;
				for (int64_t d = 0; d < c->head_dim; d++)
					to[d] += weight * v[j * c->inner + head * c->head_dim + d];
			}
			for (int64_t d = 0; d < c->head_dim; d++)
				to[d] /= total;
		}
	add(x, multiply(encoder, o, rows, c->inner, c->width, layer, "layer.0.SelfAttention.o.weight"),
	    rows * c->width);
	free(table);
	free(h);
	free(q);
	free(k);
	free(v);
	free(o);
}

static void feed(const struct encoder *encoder, double *x, int64_t rows, int layer)
{
	const struct smalti_t5_config *c = &encoder->config;
	double *h = normalize(encoder, x, rows, layer, "layer.1.layer_norm.weight");
	double *gate =
	    multiply(encoder, h, rows, c->width, c->ff_width, layer, "layer.1.DenseReluDense.wi_0.weight");
	double *y =
	    multiply(encoder, h, rows, c->width, c->ff_width, layer, "layer.1.DenseReluDense.wi_1.weight");
	for (int64_t i = 0; i < rows * c->ff_width; i++) {
		const double z = gate[i];
		y[i] *= 0.5 * z * (1 + tanh(sqrt(2 / M_PI) * (z + 0.044715 * z * z * z)));
	}
	add(x, multiply(encoder, y, rows, c->ff_width, c->width, layer, "layer.1.DenseReluDense.wo.weight"),
	    rows * c->width);
	free(h);
	free(gate);
	free(y);
}

static float *by_formula(const struct encoder *encoder, const struct smalti_token_ids *words)
{
	const struct smalti_t5_config *c = &encoder->config;
	float *table = weights(encoder, c->vocabulary, c->width, -1, "shared.weight");
	double *x = doubles(words->count * c->width);
	for (int64_t i = 0; i < words->count * c->width; i++)
		x[i] = (double)table[words->ids[i / c->width] * c->width + i % c->width];
	free(table);
	for (int layer = 0; layer < c->layers; layer++) {
		attend(encoder, x, words->count, words->count - words->padding, layer);
		feed(encoder, x, words->count, layer);
	}
	double *h = normalize(encoder, x, words->count, -1, "encoder.final_layer_norm.weight");
	float *y = malloc((size_t)(words->count * c->width) * sizeof(*y));
	if (!y)
		abort();
	for (int64_t i = 0; i < words->count * c->width; i++)
		y[i] = (float)h[i];
	free(x);
	free(h);
	return y;
}

/* Heads, widths and a feed-forward that the shards do not divide. */
static const struct smalti_t5_config odd = {
    .layers = 2,
    .vocabulary = 20,
    .width = 522,
    .heads = 5,
    .head_dim = 7,
    .inner = 35,
    .ff_width = 2053,
    .buckets = 32,
    .max_distance = 128,
    .norm_eps = 1e-6,
    .pad_id = 0,
    .eos_id = 1,
};

static void shards_agree_with_formula(void)
{
	enum { TOKENS = 6 };
	static const int32_t ids[TOKENS] = {5, 7, 2, 9, 19, 1};
	static const struct smalti_token_ids words = {.ids = ids, .count = TOKENS};
	static const struct {
		enum smalti_dtype compute;
		double tolerance;
	} rows[] = {{SMALTI_F32, 1e-5},
		    {SMALTI_BF16, 0.15 /* the sines cancel in most sums */},
		    {SMALTI_F16, 0.15 / 8}};
	for (int i = 0; i < COUNT(rows); i++) {
		struct encoder encoder = open_encoder(&odd, synthetic_t5(&odd, 0.01), rows[i].compute);
		float *expected = by_formula(&encoder, &words), *y = calloc(TOKENS, 522 * sizeof(*y));
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(stage_t5(session, encoder.t5, ids, TOKENS, y, &error), &error, "encode");
		double relative = test_max_error(y, expected, TOKENS * odd.width) /
				  test_max_abs(expected, TOKENS * odd.width);
		char what[64];
		snprintf(what, sizeof(what), "%s: %.2e of the largest", smalti_dtype_name(rows[i].compute),
			 relative);
		CHECK(relative <= rows[i].tolerance, what);
		free(y);
		free(expected);
		close_encoder(&encoder);
	}
}

/* Padding is computed, and changes nothing of the tokens before it; others that are encoded together are as
 * alone. */
static void padding_is_seen_by_nobody(void)
{
	enum { REAL = 3, ALL = 8, WIDTH = 522, CAPTIONS = 3 };
	static const int32_t ids[ALL] = {5, 7, 1};
	static const struct smalti_token_ids padded = {.ids = ids, .count = ALL, .padding = ALL - REAL};
	static const struct smalti_token_ids real = {.ids = ids, .count = REAL};
	static const enum smalti_dtype computes[] = {SMALTI_F32, SMALTI_BF16, SMALTI_F16};
	static float alone[REAL * WIDTH], y[ALL * WIDTH], others[2][REAL * WIDTH];
	for (int i = 0; i < COUNT(computes); i++) {
		struct encoder encoder = open_encoder(&odd, synthetic_t5(&odd, 0.01), computes[i]);
		const struct smalti_token_ids words[CAPTIONS] = {real, padded, real};
		float *const to[CAPTIONS] = {others[0], y, others[1]};
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(stage_t5(session, encoder.t5, ids, REAL, alone, &error), &error, "alone");
		SUCCEEDS(stage_t5_together(session, encoder.t5, words, CAPTIONS, &smalti_strategy_none, to,
					   &error),
			 &error, "together");
		CHECK(memcmp(y, alone, sizeof(alone)) == 0, "before padding");
		CHECK(memcmp(others[0], alone, sizeof(alone)) == 0, "in front of the padded one");
		CHECK(memcmp(others[1], alone, sizeof(alone)) == 0, "behind the padded one");
		if (computes[i] == SMALTI_F32) {
			float *expected = by_formula(&encoder, &padded);
			const double far = test_max_error(y, expected, ALL * WIDTH);
			CHECK(far <= 1e-5 * test_max_abs(expected, ALL * WIDTH), "formula");
			free(expected);
		}
		close_encoder(&encoder);
	}
}

/* Captions of every kind of length: some share a band, some are longer than one. */
static void together_is_as_alone(void)
{
	static const int64_t lengths[] = {300, 1, 250, 513, 7, 40};
	enum { CAPTIONS = COUNT(lengths) };
	static const enum smalti_dtype computes[] = {SMALTI_F32, SMALTI_BF16, SMALTI_F16};
	for (int i = 0; i < COUNT(computes); i++) {
		struct encoder encoder = tesserae(computes[i]);
		const int64_t width = encoder.config.width;
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_token_ids words[CAPTIONS];
		int32_t ids[CAPTIONS][513];
		float *together[CAPTIONS], *alone[CAPTIONS];
		uint64_t state = 1;
		for (int j = 0; j < CAPTIONS; j++) {
			for (int64_t k = 0; k < lengths[j]; k++)
				ids[j][k] = 2 + (int32_t)(100 * (1 + test_random(&state)));
			words[j] = (struct smalti_token_ids){.ids = ids[j], .count = lengths[j]};
			together[j] = calloc((size_t)(lengths[j] * width), sizeof(float));
			alone[j] = calloc((size_t)(lengths[j] * width), sizeof(float));
		}
		/* The short one first, so that the table of position biases grows afterwards. */
		for (int j = CAPTIONS - 1; j >= 0; j--)
			SUCCEEDS(stage_t5(session, encoder.t5, ids[j], lengths[j], alone[j], &error), &error,
				 "alone");
		SUCCEEDS(stage_t5_together(session, encoder.t5, words, CAPTIONS, &smalti_strategy_none,
					   together, &error),
			 &error, "together");
		for (int j = 0; j < CAPTIONS; j++) {
			CHECK(memcmp(together[j], alone[j], (size_t)(lengths[j] * width) * sizeof(float)) ==
				  0,
			      "bits");
			CHECK(test_max_abs(alone[j], lengths[j] * width) > 0, "values");
			free(together[j]);
			free(alone[j]);
		}
		close_encoder(&encoder);
	}
}

/* Shards with places have their own parts of the weights, and the bits of those that have none; also where
 * the weights are given back. Places that are not there are those that are. */
static void places_change_no_bit(void)
{
	enum { CAPTIONS = 2, MOST = 600 };
	static const int64_t lengths[CAPTIONS] = {6, 570};
	static const enum smalti_dtype computes[] = {SMALTI_F32, SMALTI_BF16, SMALTI_F16};
	static const struct {
		const char *name;
		double shares[5];
	} strategies[] = {
	    {"patch2", {0, 1, 1}}, {"ring3", {1, 0, 3, 2}}, {"hybrid:cfg2.tensor3", {1, 1, 1, 1, 1}}};
	static int32_t ids[CAPTIONS][MOST];
	static float alone[CAPTIONS][MOST * 522], placed[CAPTIONS][MOST * 522];
	float *const to_alone[] = {alone[0], alone[1]}, *const to_placed[] = {placed[0], placed[1]};
	struct smalti_token_ids words[CAPTIONS];
	for (int j = 0; j < CAPTIONS; j++) {
		for (int64_t k = 0; k < lengths[j]; k++)
			ids[j][k] = (int32_t)((7 * k + j) % odd.vocabulary);
		words[j] = (struct smalti_token_ids){.ids = ids[j], .count = lengths[j]};
	}
	for (int i = 0; i < COUNT(computes); i++) {
		struct encoder encoder = open_encoder(&odd, synthetic_t5(&odd, 0.01), computes[i]);
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(stage_t5_together(session, encoder.t5, words, CAPTIONS, &smalti_strategy_none,
					   to_alone, &error),
			 &error, "alone");
		for (int j = 0; j < 2 * COUNT(strategies); j++) {
			struct smalti_strategy strategy;
			const char *name = strategies[j % COUNT(strategies)].name;
			SUCCEEDS(smalti_strategy_read(&strategy, name,
						      strategies[j % COUNT(strategies)].shares, 5, &error),
				 &error, name);
			if (j == COUNT(strategies))
				encoder.t5->functions->stream(encoder.t5);
			memset(placed, 0, sizeof(placed));
			SUCCEEDS(stage_t5_together(session, encoder.t5, words, CAPTIONS, &strategy, to_placed,
						   &error),
				 &error, name);
			for (int k = 0; k < CAPTIONS; k++)
				CHECK(memcmp(placed[k], alone[k],
					     (size_t)(lengths[k] * odd.width) * sizeof(float)) == 0,
				      name);
			smalti_strategy_free(&strategy);
		}
		close_encoder(&encoder);
	}
}

/* Bytes of files that this process holds. */
static int64_t file_bytes_held(void)
{
	long long total, resident, shared;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%lld %lld %lld", &total, &resident, &shared) != 3)
		abort();
	fclose(file);
	return shared * sysconf(_SC_PAGESIZE);
}

struct on_progress {
	atomic_bool over;
	int64_t max;
};

static void *watch_memory(void *argument)
{
	struct on_progress *on_progress = argument;
	while (!atomic_load(&on_progress->over)) {
		const int64_t held = file_bytes_held();
		if (held > on_progress->max)
			on_progress->max = held;
		usleep(200);
	}
	return NULL;
}

static void streamed_weights_are_given_back(void)
{
	enum { TOKENS = 3, WIDTH = 512 };
	static const int32_t ids[TOKENS] = {5, 7, 1};
	struct smalti_t5_config config = odd;
	config.layers = 12;
	config.width = WIDTH;
	config.heads = 4;
	config.head_dim = 64;
	config.inner = 256;
	config.ff_width = 2048;
	float whole[TOKENS * WIDTH], streamed[TOKENS * WIDTH];
	struct smalti_error error = SMALTI_NO_ERROR;
	struct encoder encoder = open_encoder(&config, synthetic_t5(&config, 0.03), SMALTI_F32);
	const int64_t all = encoder.t5->functions->mapped_bytes(encoder.t5), layer = all / config.layers;
	const int64_t before = file_bytes_held();
	SUCCEEDS(stage_t5(session, encoder.t5, ids, TOKENS, whole, &error), &error, "whole");
	CHECK(file_bytes_held() - before > all - layer, "kept when there is room");

	encoder.t5->functions->stream(encoder.t5);
	CHECK(encoder.t5->functions->mapped_bytes(encoder.t5) < all / 3, "prediction");
	SUCCEEDS(stage_t5(session, encoder.t5, ids, TOKENS, streamed, &error), &error, "streamed");
	CHECK(file_bytes_held() - before < layer, "given back");
	struct on_progress on_progress = {.max = 0};
	pthread_t watcher;
	pthread_create(&watcher, NULL, watch_memory, &on_progress);
	SUCCEEDS(stage_t5(session, encoder.t5, ids, TOKENS, streamed, &error), &error, "streamed again");
	atomic_store(&on_progress.over, true);
	pthread_join(watcher, NULL);
	CHECK(on_progress.max - before <= encoder.t5->functions->mapped_bytes(encoder.t5),
	      "given back on the way");
	CHECK(memcmp(whole, streamed, sizeof(whole)) == 0, "bits");
	close_encoder(&encoder);
}

static const struct test tests[] = {
    {"shards agree with the formula", shards_agree_with_formula},
    {"padding is seen by nobody", padding_is_seen_by_nobody},
    {"together as alone", together_is_as_alone},
    {"places change no bit", places_change_no_bit},
    {"streamed weights are given back", streamed_weights_are_given_back},
};

TEST_PROGRAM()
{
	session = stage_session(NULL, 0);
	int status = test_main("T5", tests, COUNT(tests));
	struct smalti_error error = SMALTI_NO_ERROR;
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
