/* SPDX-License-Identifier: Apache-2.0
 *
 * Retrieval: what is found is what a sort of all scores finds, whatever the workers and the policy; vectors
 * of captions and images are those of their definition.
 */
#include "codelets/codelets.h"
#include "device_session.h"
#include "harness.h"
#include "jobs/prompt_encoder.h"
#include "kernels/contrast.h"
#include "kernels/isa.h"
#include "kernels/matches.h"
#include "retrieve/index.h"
#include "retrieve/projection_step.h"
#include "retrieve/whitening.h"
#include "rt/session.h"

#include <math.h>

/* Small whole numbers: scores are exact, and many are equal. */
static void fill_whole(uint64_t *state, float *to, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		to[i] = (float)floor((double)test_random(state) * 4);
}

struct scored {
	double score;
	int64_t row;
};

static int by_score(const void *a, const void *b)
{
	const struct scored *one = a, *other = b;
	if (one->score != other->score)
		return one->score < other->score ? 1 : -1;
	return one->row < other->row ? -1 : 1;
}

/* Of one query, all rows in their order. */
static void sort_all(const float *query, const float *vectors, int64_t rows, int64_t dim,
		     struct scored *sorted)
{
	for (int64_t row = 0; row < rows; row++) {
		sorted[row] = (struct scored){0, row};
		for (int64_t i = 0; i < dim; i++)
			sorted[row].score += (double)query[i] * (double)vectors[row * dim + i];
	}
	qsort(sorted, (size_t)rows, sizeof(*sorted), by_score);
}

static void offered(void)
{
	enum { ROWS = 300, TOP = 7 };
	float scores[ROWS];
	struct smalti_match forward[TOP], backward[TOP], halves[TOP], few[TOP];
	uint64_t state = 1;
	fill_whole(&state, scores, ROWS);
	scores[17] = scores[200] = NAN;
	smalti_matches_clear(1, TOP, forward);
	smalti_matches_clear(1, TOP, backward);
	smalti_matches_clear(1, TOP, halves);
	smalti_matches_clear(1, TOP, few);
	smalti_matches_offer(1, TOP, 0, ROWS, scores, ROWS, forward);
	for (int64_t row = ROWS - 1; row >= 0; row--)
		smalti_matches_offer(1, TOP, row, 1, scores + row, 1, backward);
	smalti_matches_offer(1, TOP, ROWS / 2, ROWS - ROWS / 2, scores + ROWS / 2, ROWS, halves);
	struct smalti_match others[TOP];
	smalti_matches_clear(1, TOP, others);
	smalti_matches_offer(1, TOP, 0, ROWS / 2, scores, ROWS, others);
	smalti_matches_merge(1, TOP, others, halves);
	smalti_matches_offer(1, TOP, 40, 3, scores + 40, 3, few);
	CHECK(memcmp(forward, backward, sizeof(forward)) == 0, "backward");
	CHECK(memcmp(forward, halves, sizeof(forward)) == 0, "merged");
	CHECK(few[2].row >= 40 && few[3].row == -1, "fewer than asked for");
	for (int i = 0; i < TOP; i++)
		CHECK(forward[i].row >= 0 && !isnan(forward[i].score), "a number");
	for (int i = 1; i < TOP; i++)
		CHECK(forward[i - 1].score > forward[i].score ||
			  (forward[i - 1].score == forward[i].score && forward[i - 1].row < forward[i].row),
		      "in order");
}

static const struct {
	int64_t queries, rows, dim, top;
} shapes[] = {
    {1, 1, 1, 1}, {3, 129, 67, 5}, {257, 1000, 13, 11}, {2, 70001, 31, 100}, {5, 7, 256, 20},
};

static void search_with(const struct smalti_session_options *options, int shape, const float *queries,
			const float *vectors, struct smalti_found *found)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_index index = {.info = {.items = shapes[shape].rows, .dim = shapes[shape].dim},
					   .vectors = vectors};
	struct smalti_session *session = smalti_session_open(options, &error);
	SUCCEEDS(session ? 0 : -1, &error, "session");
	SUCCEEDS(smalti_index_search(&index, session, queries, shapes[shape].queries, shapes[shape].top,
				     found, &error),
		 &error, "search");
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}

static void check_found(int shape, const float *queries, const float *vectors,
			const struct smalti_found *found)
{
	const int64_t rows = shapes[shape].rows, dim = shapes[shape].dim, top = shapes[shape].top;
	struct scored *sorted = smalti_calloc(rows, sizeof(*sorted), NULL);
	for (int64_t query = 0; query < shapes[shape].queries; query++) {
		sort_all(queries + query * dim, vectors, rows, dim, sorted);
		for (int64_t i = 0; i < top; i++) {
			const struct smalti_found *at = &found[query * top + i];
			if (i < rows)
				CHECK(at->number == sorted[i].row && (double)at->score == sorted[i].score,
				      "as sorted");
			else
				CHECK(at->number == -1, "no more rows");
		}
	}
	free(sorted);
}

static void searched(void)
{
	static const struct smalti_session_options sessions[] = {
	    {.cpus = 1}, {.cpus = 2}, {.cpus = 2, .policy = "eager"}, {.cpus = 2, .policy = "dmda"}};
	for (int shape = 0; shape < COUNT(shapes); shape++) {
		const int64_t queries = shapes[shape].queries, dim = shapes[shape].dim;
		float *query = smalti_calloc(queries * dim, sizeof(float), NULL);
		float *vectors = smalti_calloc(shapes[shape].rows * dim, sizeof(float), NULL);
		struct smalti_found *found = smalti_calloc(queries * shapes[shape].top, sizeof(*found), NULL);
		uint64_t state = 7;
		fill_whole(&state, query, queries * dim);
		fill_whole(&state, vectors, shapes[shape].rows * dim);
		for (int i = 0; i < COUNT(sessions); i++) {
			memset(found, 0x55, (size_t)(queries * shapes[shape].top) * sizeof(*found));
			search_with(&sessions[i], shape, query, vectors, found);
			check_found(shape, query, vectors, found);
		}
		free(query);
		free(vectors);
		free(found);
	}
}

/* Of any numbers, in tasks of several sizes: bits are a CPU's. Where CPUs round otherwise the scores are
 * near, and where they are alike the items may be others. */
static void compare_found(int64_t count, const struct smalti_found *found, const struct smalti_found *of_cpu)
{
	const bool same = smalti_isa() > SMALTI_ISA_GENERIC;
	for (int64_t i = 0; i < count; i++)
		CHECK(same ? found[i].number == of_cpu[i].number && found[i].score == of_cpu[i].score
			   : found[i].score == of_cpu[i].score ||
				 fabsf(found[i].score - of_cpu[i].score) < 1e-5F,
		      "as on a CPU");
}

static void searched_on_devices(void)
{
	enum { ITEMS = 100003, QUERIES = 259, DIM = 67, TOP = 13 };
	static const struct {
		const char *cpus, *megabytes, *policy;
		bool whole; /* or one query alone */
	} runs[] = {{"1", NULL, "eager", true}, {"1", NULL, "dmda", false}, {"1", "96", "dmdas", true}};
	struct smalti_error error = SMALTI_NO_ERROR;
	float *vectors = smalti_calloc(ITEMS * DIM, sizeof(float), NULL);
	struct smalti_found *of_cpu = smalti_calloc(2 * QUERIES * TOP, sizeof(*of_cpu), NULL);
	struct smalti_found *found = of_cpu + QUERIES * TOP;
	const struct smalti_index index = {.info = {.items = ITEMS, .dim = DIM}, .vectors = vectors};
	const struct smalti_session_options cpu = {.cpus = 1};
	struct smalti_session *session = smalti_session_open(&cpu, &error);
	test_fill(vectors, ITEMS * DIM, 0.3, 2);
	SUCCEEDS(smalti_index_search(&index, session, vectors, QUERIES, TOP, of_cpu, &error), &error, "CPU");
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
	for (int i = 0; i < COUNT(runs); i++) {
		const int64_t queries = runs[i].whole ? QUERIES : 1;
		session = test_open_devices("search", runs[i].cpus, 2, runs[i].megabytes, runs[i].policy);
		if (!session)
			continue;
		SUCCEEDS(smalti_index_search(&index, session, vectors, queries, TOP, found, &error), &error,
			 runs[i].policy);
		compare_found(queries * TOP, found, of_cpu);
		test_close_devices(session);
	}
	free(of_cpu);
	free(vectors);
}

static void refused(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_session_options options = {.cpus = 1};
	struct smalti_session *session = smalti_session_open(&options, &error);
	const float vector = 1;
	struct smalti_found found;
	const struct smalti_index index = {.info = {.items = 1, .dim = 1}, .vectors = &vector};
	FAILS(smalti_index_search(&index, session, &vector, 0, 1, &found, &error), &error, SMALTI_EINVAL,
	      "no queries", "number of queries");
	FAILS(smalti_index_search(&index, session, &vector, 1, 0, &found, &error), &error, SMALTI_EINVAL,
	      "nothing to find", "number of items");
	FAILS(smalti_index_search(&index, NULL, &vector, 1, 1, &found, &error), &error, SMALTI_EINVAL,
	      "no session", "session");
	error.code = SMALTI_OK;
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}

/* A tokenizer that is not the encoder's: what it found is given back once. */
static void words_that_are_not_there(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_session_options options = {.cpus = 1};
	const struct smalti_model_options model = {.directory = test_model("tesserae")};
	struct smalti_session *session = smalti_session_open(&options, &error);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "words", 0, &error);
	struct smalti_prompt_encoder encoder = {0};
	char digest[SMALTI_DIGEST_LENGTH + 1], *directory = NULL;
	int32_t *ids = NULL;
	int64_t count;
	SUCCEEDS(smalti_prompt_encoder_open_of(&encoder, task_group, &model, &directory, digest, &error),
		 &error, "the embedded model's encoder");
	encoder.max_tokens = 8;
	encoder.model->vocabulary = 3;
	FAILS(smalti_prompt_encoder_tokenize(&encoder, "a red star", 10, SMALTI_CLEANING_RAW, &ids, &count,
					     &error),
	      &error, SMALTI_EFORMAT, "an id too large", "does not exist", "do not belong together");
	CHECK(ids == NULL, "given back");
	smalti_prompt_encoder_close(&encoder);
	smalti_task_group_free(task_group);
	free(directory);
	error.code = SMALTI_OK;
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}

static void captions(void)
{
	enum { TOKENS = 3, WIDTH = 700 };
	float values[TOKENS * WIDTH], unit[WIDTH];
	double vector[WIDTH], square = 0;
	uint16_t narrow[TOKENS * WIDTH];
	test_fill(values, TOKENS * WIDTH, 0.37, 1);
	smalti_narrow(SMALTI_BF16, values, TOKENS * WIDTH, narrow);
	const struct smalti_features_info info = {
	    .type = SMALTI_FEATURES_BF16, .caption_count = 2, .text_width = WIDTH};
	const struct smalti_features_row row = {.texts = {{0}, {TOKENS, NULL, narrow}}};
	CHECK(smalti_vector_dim(&info, SMALTI_INDEX_CAPTIONS) == WIDTH, "dim");
	CHECK(!smalti_vector_of(&info, SMALTI_INDEX_CAPTIONS, 0, &row, vector), "no tokens");
	CHECK(smalti_vector_of(&info, SMALTI_INDEX_CAPTIONS, 1, &row, vector), "tokens");
	for (int i = 0; i < WIDTH; i++) {
		double mean = 0;
		for (int token = 0; token < TOKENS; token++)
			mean += (double)smalti_bf16_to_f32(narrow[token * WIDTH + i]) / TOKENS;
		CHECK(fabs(vector[i] - mean) < 1e-12, "mean");
		square += mean * mean;
	}
	CHECK(smalti_vector_normalise(WIDTH, vector, unit), "length");
	for (int i = 0; i < WIDTH; i++)
		CHECK(fabs((double)unit[i] - vector[i] / sqrt(square)) < 1e-7, "of length 1");
	memset(vector, 0, sizeof(vector));
	CHECK(!smalti_vector_normalise(WIDTH, vector, unit) && unit[5] == 0, "a vector of zeros");
	narrow[0] = 0x7f80; /* infinity */
	CHECK(!smalti_vector_of(&info, SMALTI_INDEX_CAPTIONS, 1, &row, vector), "not finite");
}

/* As torch's adaptive_avg_pool2d. */
static double pooled(const float *plane, int64_t height, int64_t width, int64_t y, int64_t x)
{
	const int64_t rows[] = {y * height / 8, ((y + 1) * height + 7) / 8};
	const int64_t columns[] = {x * width / 8, ((x + 1) * width + 7) / 8};
	double sum = 0;
	for (int64_t i = rows[0]; i < rows[1]; i++)
		for (int64_t j = columns[0]; j < columns[1]; j++)
			sum += (double)plane[i * width + j];
	return sum / (double)((rows[1] - rows[0]) * (columns[1] - columns[0]));
}

static void images(void)
{
	static const int64_t sizes[][2] = {{16, 16}, {8, 8}, {13, 5}, {1, 31}};
	enum { CHANNELS = 2, MOST = 16 * 16 };
	float values[2 * CHANNELS * MOST];
	double vector[CHANNELS * 64];
	for (int i = 0; i < COUNT(sizes); i++) {
		const int64_t height = sizes[i][0], width = sizes[i][1];
		test_fill(values, 2 * CHANNELS * height * width, 0.7, i);
		const struct smalti_features_info info = {.type = SMALTI_FEATURES_F32,
							  .latent_channels = CHANNELS};
		const struct smalti_features_row row = {
		    .image = {.latent_height = height, .latent_width = width, .values = values}};
		CHECK(smalti_vector_dim(&info, SMALTI_INDEX_IMAGES) == CHANNELS * 64, "dim");
		CHECK(smalti_vector_of(&info, SMALTI_INDEX_IMAGES, 0, &row, vector), "an image");
		for (int64_t at = 0; at < (int64_t)CHANNELS * 64; at++)
			CHECK(fabs(vector[at] - pooled(values + at / 64 * height * width, height, width,
						       at % 64 / 8, at % 8)) < 1e-12,
			      "averages");
	}
}

/* Of many correlated vectors: whitened ones have the unit matrix as their covariance, but for what was added.
 */
static void whitened(void)
{
	enum { DIM = 9, COUNT_OF_VECTORS = 400 };
	static double vectors[COUNT_OF_VECTORS][DIM];
	struct smalti_vector_moments moments;
	struct smalti_whitening whitening;
	struct smalti_error error = SMALTI_NO_ERROR;
	uint64_t state = 3;
	SUCCEEDS(smalti_vector_moments_open(&moments, DIM, &error), &error, "moments");
	for (int n = 0; n < COUNT_OF_VECTORS; n++) {
		for (int i = 0; i < DIM; i++) /* far from 0, each with a part of the one before */
			vectors[n][i] =
			    100 + (i ? vectors[n][i - 1] - 100 : 0) * 0.5 + (double)test_random(&state);
		smalti_vector_moments_add(&moments, vectors[n]);
	}
	SUCCEEDS(smalti_whitening_make(&whitening, &moments, &error), &error, "whitening");
	double covariance[DIM][DIM] = {{0}};
	for (int n = 0; n < COUNT_OF_VECTORS; n++) {
		smalti_whitening_apply(DIM, whitening.mean, whitening.matrix, vectors[n]);
		for (int i = 0; i < DIM; i++)
			for (int j = 0; j < DIM; j++)
				covariance[i][j] += vectors[n][i] * vectors[n][j] / COUNT_OF_VECTORS;
	}
	for (int i = 0; i < DIM; i++)
		for (int j = 0; j < DIM; j++)
			CHECK(fabs(covariance[i][j] - (i == j)) < 0.02, "the unit matrix");
	smalti_whitening_free(&whitening);
	smalti_vector_moments_close(&moments);
}

static void all_alike(void)
{
	const double vector[2] = {3, -1};
	double same[2] = {3, -1};
	struct smalti_vector_moments moments;
	struct smalti_whitening whitening;
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_vector_moments_open(&moments, 2, &error), &error, "moments");
	for (int i = 0; i < 3; i++)
		smalti_vector_moments_add(&moments, vector);
	SUCCEEDS(smalti_whitening_make(&whitening, &moments, &error), &error, "whitening");
	smalti_whitening_apply(2, whitening.mean, whitening.matrix, same);
	CHECK(same[0] == 0 && same[1] == 0, "the mean is zeros");
	smalti_whitening_free(&whitening);
	smalti_vector_moments_close(&moments);
}

/* The loss of pairs x, y [batch, dim] of any length, in double, from its definition. */
static double contrast(int batch, int dim, const double *x, const double *y, double temperature)
{
	double logits[32][32], loss = 0;
	for (int i = 0; i < batch; i++)
		for (int j = 0; j < batch; j++) {
			double product = 0, xx = 0, yy = 0;
			for (int k = 0; k < dim; k++) {
				product += x[i * dim + k] * y[j * dim + k];
				xx += x[i * dim + k] * x[i * dim + k];
				yy += y[j * dim + k] * y[j * dim + k];
			}
			logits[i][j] = exp(temperature) * product / sqrt(xx * yy);
		}
	for (int i = 0; i < batch; i++) {
		double row = 0, column = 0;
		for (int j = 0; j < batch; j++) {
			row += exp(logits[i][j]);
			column += exp(logits[j][i]);
		}
		loss += (log(row) + log(column) - 2 * logits[i][i]) / (2 * batch);
	}
	return loss;
}

/* The gradient by one of the numbers, by differences. */
static double slope(int batch, int dim, const double *x, const double *y, double temperature, double *number)
{
	const double kept = *number, step = 1e-5;
	*number = kept + step;
	const double above = contrast(batch, dim, x, y, temperature);
	*number = kept - step;
	const double below = contrast(batch, dim, x, y, temperature);
	*number = kept;
	return (above - below) / (2 * step);
}

static void contrasted(void)
{
	static const int batches[][3] = {{2, 1, 1}, {5, 3, 2}, {13, 17, 5}, {32, 7, 31}};
	enum { MAX_BATCH = 32, MAX_DIM = 17 };
	static double wide[2][MAX_BATCH * MAX_DIM];
	static float narrow[2][MAX_BATCH * MAX_DIM], unit[2][MAX_BATCH * MAX_DIM], g[MAX_BATCH * MAX_DIM];
	static double lse[2][MAX_BATCH];
	const double temperature = 1.25;
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int n = 0; n < COUNT(batches); n++) {
		const int batch = batches[n][0], dim = batches[n][1], band = batches[n][2];
		double loss = 0, by_temperature = 0;
		for (int side = 0; side < 2; side++) {
			test_fill(narrow[side], (int64_t)batch * dim, 0.9, 3 * n + side + 1);
			for (int i = 0; i < batch * dim; i++)
				wide[side][i] = (double)narrow[side][i];
			smalti_unit_rows(batch, dim, narrow[side], unit[side]);
		}
		for (int side = 0; side < 2; side++)
			for (int first = 0; first < batch; first += band) {
				const struct smalti_contrast c = {band < batch - first ? band : batch - first,
								  first, batch, dim, (float)temperature};
				SUCCEEDS(smalti_contrast_sums(&c, unit[side] + first * dim, unit[!side],
							      lse[side] + first, &error),
					 &error, "sums");
			}
		for (int side = 0; side < 2; side++) {
			for (int first = 0; first < batch; first += band) {
				const struct smalti_contrast c = {band < batch - first ? band : batch - first,
								  first, batch, dim, (float)temperature};
				struct smalti_contrast_parts parts;
				SUCCEEDS(smalti_contrast_gradient(&c, unit[side] + first * dim, unit[!side],
								  lse[side], lse[!side], g + first * dim,
								  &parts, &error),
					 &error, "gradient");
				loss += (double)parts.loss;
				by_temperature += (double)parts.temperature;
			}
			smalti_unit_rows_backward(batch, dim, narrow[side], g);
			for (int i = 0; i < batch * dim; i++)
				CHECK(fabs((double)g[i] - slope(batch, dim, wide[0], wide[1], temperature,
								&wide[side][i])) < 2e-5,
				      "the gradient by a value");
		}
		const double step = 1e-5;
		CHECK(fabs(loss - contrast(batch, dim, wide[0], wide[1], temperature)) < 1e-5, "the loss");
		CHECK(fabs(by_temperature - (contrast(batch, dim, wide[0], wide[1], temperature + step) -
					     contrast(batch, dim, wide[0], wide[1], temperature - step)) /
						(2 * step)) < 1e-5,
		      "the gradient by the temperature");
	}
	const float zeros[2] = {0};
	float same[2] = {1, 1};
	smalti_unit_rows_backward(1, 2, zeros, same);
	CHECK(same[0] == 0 && same[1] == 0, "a row of zeros");
}

static int copy_values(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)error;
	memcpy(user, values, (size_t)count * sizeof(*values));
	return 0;
}

enum { TRAINED_DIM = 5, TRAINED_WIDTH = 7 };

/* Some steps on batches that no band divides. */
static void train_some(const struct smalti_session_options *options, float *weights)
{
	enum { BATCH = 150, STEPS = 6, WIDTHS = TRAINED_WIDTH + 3 };
	static float rows[BATCH * WIDTHS];
	struct smalti_contrast_parts parts[STEPS];
	struct smalti_projection_trainer trainer;
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = smalti_session_open(options, &error);
	test_fill(rows, BATCH * WIDTHS, 1, 5);
	for (int i = 0; i < BATCH; i++) /* what is to be learnt: the images are parts of the captions */
		memcpy(rows + i * WIDTHS + TRAINED_WIDTH, rows + i * WIDTHS + 2, 3 * sizeof(*rows));
	SUCCEEDS(smalti_projection_trainer_open(&trainer, session, TRAINED_DIM, (int64_t[]){TRAINED_WIDTH, 3},
						0.01, 3, &error),
		 &error, "trainer");
	for (int i = 0; i < STEPS; i++)
		SUCCEEDS(smalti_projection_step(&trainer, rows, BATCH, i + 1, 0.05, &parts[i], &error),
			 &error, "step");
	for (int i = 0; i < 2; i++)
		smalti_insert(deliver, trainer.task_group, (.x = trainer.list[i].value),
			      .count = trainer.list[i].count, .sink = copy_values,
			      .user = weights + i * TRAINED_DIM * TRAINED_WIDTH);
	smalti_task_group_wait(trainer.task_group);
	SUCCEEDS(smalti_task_group_status(trainer.task_group, &error), &error, "tasks");
	CHECK(parts[STEPS - 1].loss < 0.8F * parts[0].loss, "it learns");
	smalti_projection_trainer_close(&trainer);
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}

static void trained(void)
{
	static const struct smalti_session_options sessions[] = {
	    {.cpus = 1}, {.cpus = 2, .policy = "eager"}, {.cpus = 2, .policy = "lws"}};
	enum { WEIGHTS = TRAINED_DIM * (TRAINED_WIDTH + 3) };
	float weights[COUNT(sessions)][WEIGHTS];
	for (int i = 0; i < COUNT(sessions); i++) {
		train_some(&sessions[i], weights[i]);
		CHECK(memcmp(weights[i], weights[0], sizeof(weights[0])) == 0, "the same bits");
	}
}

static const struct test tests[] = {
    {"offered in any order", offered},
    {"searched as a sort would", searched},
    {"searched on devices", searched_on_devices},
    {"refused", refused},
    {"words that are not there", words_that_are_not_there},
    {"vectors of captions", captions},
    {"vectors of images", images},
    {"whitened", whitened},
    {"all items alike", all_alike},
    {"the contrastive loss and its gradients", contrasted},
    {"trained with any workers", trained},
};
TEST_MAIN("retrieve", tests)
