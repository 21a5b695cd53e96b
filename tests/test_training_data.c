/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches of training: their order over several directories and epochs, buckets, captions, and going on from
 * a position.
 */
#include "base/file.h"
#include "golden.h"
#include "golden_features.h"
#include "harness.h"
#include "train/data.h"

enum { ITEMS = 64, HELD_OUT = 16, ALL = ITEMS + HELD_OUT, BATCH = 8 };

static struct directories {
	char path[2][512];
	const char *list[2];
} made;

/* Of 64 items and of 16; `lacking` as there. */
static const char *const *make_directories(const char *text_model, int64_t lacking)
{
	static const char *const kinds[] = {"item", "held"};
	struct smalti_safetensors *file = golden_open("train/curve.safetensors");
	const char *scratch = test_scratch();
	for (int i = 0; i < 2; i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const struct golden_features features = {.file = file,
							 .kind = kinds[i],
							 .scaling_factor = 0.5,
							 .text_model = i ? text_model : "text",
							 .beginnings = true,
							 .lacking = lacking};
		snprintf(made.path[i], sizeof(made.path[i]), "%s/%s", scratch, kinds[i]);
		made.list[i] = made.path[i];
		SUCCEEDS(make_golden_features(made.path[i], &features, &error), &error, kinds[i]);
	}
	smalti_safetensors_close(file);
	return made.list;
}

static struct smalti_train_options options_of(const char *const *directories, int64_t count)
{
	return (struct smalti_train_options){
	    .data = {.directories = directories, .directory_count = count, .drop = 0.25, .prefetch = 3},
	    .seed = 5,
	    .batch = BATCH};
}

static int damaged_rows;

static void count_damage(void *user, const char *message)
{
	(void)user;
	CHECK(strstr(message, "row") != NULL, message);
	damaged_rows++;
}

static struct smalti_training_data *open_data(const struct smalti_train_options *options)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_training_data *data = smalti_training_data_open(options, count_damage, NULL, &error);
	SUCCEEDS(data ? 0 : -1, &error, "data");
	return data;
}

static void next(struct smalti_training_data *data, struct smalti_training_sample *samples)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_training_data_next(data, samples, &error), &error, "next batch");
}

static void free_samples(struct smalti_training_sample *samples)
{
	for (int i = 0; i < BATCH; i++)
		smalti_training_sample_free(&samples[i]);
}

/* The order is that of the shards of all directories behind each other. */
static void directories_are_read_as_one(void)
{
	const struct smalti_train_options options = options_of(make_directories("text", 0), 2);
	const int64_t rows[] = {ITEMS, HELD_OUT}, first[] = {0, ITEMS};
	struct smalti_training_data *data = open_data(&options);
	for (uint64_t epoch = 0; epoch < 2; epoch++) {
		const struct smalti_features_options order_options = {
		    .shuffled = true, .seed = 5, .epoch = epoch, .parts = 1};
		struct smalti_features_order *order =
		    smalti_features_order_open(&order_options, rows, 2, NULL);
		for (int batch = 0; batch < ALL / BATCH; batch++) {
			struct smalti_training_sample samples[BATCH];
			next(data, samples);
			for (int i = 0; i < BATCH; i++) {
				struct smalti_features_place place;
				CHECK(smalti_features_order_next(order, &place), "a row of the order");
				CU_ASSERT_EQUAL(samples[i].index, first[place.shard] + place.row);
				CU_ASSERT_EQUAL(samples[i].epoch, (int64_t)epoch);
				CHECK(samples[i].dropped == (samples[i].draws.drop < 0.25f), "dropped");
				CHECK(samples[i].dropped == !samples[i].caption, "caption");
			}
			free_samples(samples);
		}
		smalti_features_order_close(order);
	}
	smalti_training_data_close(data);
}

static void captions_are_taken_by_weight(void)
{
	struct smalti_train_options options = options_of(make_directories("text", 0), 1);
	options.data.drop = 0;
	options.data.caption_count = 2;
	options.data.captions[0] = "begin";
	options.data.captions[1] = "prompt";
	options.data.weights[0] = 1;
	options.data.weights[1] = 3;
	struct smalti_training_data *data = open_data(&options);
	int beginnings = 0;
	for (int batch = 0; batch < 40; batch++) {
		struct smalti_training_sample samples[BATCH];
		next(data, samples);
		for (int i = 0; i < BATCH; i++) {
			CHECK((samples[i].tokens == 1) == (samples[i].draws.caption < 0.25f), "by the draw");
			beginnings += samples[i].tokens == 1;
		}
		free_samples(samples);
	}
	CHECK(beginnings > 50 && beginnings < 110, "a quarter of 320");
	smalti_training_data_close(data);
}

static void check_same(const struct smalti_training_sample *a, const struct smalti_training_sample *b)
{
	const size_t moments = (size_t)(2 * 4 * a->height * a->width * 2);
	CHECK(a->index == b->index && a->epoch == b->epoch && a->seed == b->seed && a->tokens == b->tokens,
	      "sample");
	CHECK(memcmp(a->moments, b->moments, moments) == 0, "moments");
}

/* From each position the batches that come are those that would have come. */
static void any_position_is_gone_on_from(enum smalti_bucketing bucketing)
{
	enum { STEPS = 14 };
	struct smalti_train_options options = options_of(make_directories("text", 7), 2);
	options.data.bucketing = bucketing;
	struct smalti_training_data *data = open_data(&options), *again = open_data(&options);
	bool waited = false;
	for (int step = 0; step < STEPS; step++) {
		struct smalti_data_position position;
		struct smalti_training_sample samples[BATCH], others[BATCH];
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_training_data_position(data, &position, &error), &error, "position");
		SUCCEEDS(smalti_training_data_seek(again, &position, &error), &error, "seek");
		waited = waited || position.waiting_count > 0;
		free(position.waiting);
		next(data, samples);
		next(again, others);
		for (int i = 0; i < BATCH; i++) {
			check_same(&samples[i], &others[i]);
			CHECK(samples[i].index % ITEMS % 7 != 6, "complete items alone");
			CHECK(bucketing == SMALTI_BUCKET_NONE || (samples[i].height == samples[0].height &&
								  samples[i].width == samples[0].width),
			      "one shape");
		}
		free_samples(samples);
		free_samples(others);
	}
	CHECK(waited == (bucketing == SMALTI_BUCKET_SHAPE), "samples wait in buckets");
	smalti_training_data_close(data);
	smalti_training_data_close(again);
}

static void positions_are_gone_on_from(void)
{
	any_position_is_gone_on_from(SMALTI_BUCKET_NONE);
	any_position_is_gone_on_from(SMALTI_BUCKET_SHAPE);
}

/* Changes a value of the item whose moments these are. */
static void damage_item(const struct smalti_training_sample *sample)
{
	char path[600];
	struct smalti_error error = SMALTI_NO_ERROR;
	size_t bytes = 0;
	snprintf(path, sizeof(path), "%s/shard-%012d-%012d.h5", made.path[0], 0, ITEMS);
	char *file = smalti_file_read(path, 1 << 26, &bytes, &error);
	SUCCEEDS(file ? 0 : -1, &error, path);
	char *found =
	    memmem(file, bytes, sample->moments, (size_t)(2 * 4 * sample->height * sample->width * 2));
	CHECK(found != NULL, "the item's values are in its shard");
	found[1] ^= 1;
	FILE *stream = fopen(path, "wb");
	CHECK(stream && fwrite(file, bytes, 1, stream) == 1 && fclose(stream) == 0, path);
	free(file);
}

/* Damages items of the first and the third batch. */
static void damage_items(const struct smalti_train_options *options)
{
	struct smalti_training_sample samples[BATCH], later[BATCH];
	struct smalti_training_data *data = open_data(options);
	next(data, samples);
	next(data, later);
	free_samples(later);
	next(data, later);
	damage_item(&samples[2]);
	damage_item(&samples[5]);
	damage_item(&later[1]);
	free_samples(samples);
	free_samples(later);
	smalti_training_data_close(data);
}

enum { RANKS = 3 };

/* Reads a batch as ranks do: 0, or the damage that one of them found, which all have noted. */
static int next_of_ranks(struct smalti_training_data *const *ranks,
			 struct smalti_training_sample samples[RANKS][BATCH])
{
	struct smalti_data_position before[RANKS];
	struct smalti_error error = SMALTI_NO_ERROR, cause = SMALTI_NO_ERROR;
	int64_t damaged = INT64_MAX;
	for (int rank = 0; rank < RANKS; rank++) {
		struct smalti_error own = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_training_data_position(ranks[rank], &before[rank], &error), &error,
			 "position");
		const int status = smalti_training_data_next(ranks[rank], samples[rank], &own);
		const int64_t found = smalti_training_data_damaged(ranks[rank]);
		CHECK((status < 0) == (found >= 0), "a batch, or damage");
		if (found >= 0 && found < damaged) {
			damaged = found;
			cause = own;
		}
		if (found >= 0)
			samples[rank][0].index = -1;
	}
	for (int rank = 0; rank < RANKS && damaged < INT64_MAX; rank++) {
		if (samples[rank][0].index >= 0)
			free_samples(samples[rank]);
		SUCCEEDS(smalti_training_data_note(ranks[rank], damaged, cause.message, &error), &error,
			 "note");
		SUCCEEDS(smalti_training_data_seek(ranks[rank], &before[rank], &error), &error, "seek");
	}
	for (int rank = 0; rank < RANKS; rank++)
		free(before[rank].waiting);
	return damaged < INT64_MAX;
}

/* Each sample's values come to the rank of its place alone, and the batches are those of one reader. */
static void rows_are_dealt_to_ranks(enum smalti_bucketing bucketing)
{
	enum { STEPS = 22 };
	struct smalti_train_options options = options_of(make_directories("text", 7), 2);
	options.data.bucketing = bucketing;
	damage_items(&options);
	struct smalti_training_data *whole = open_data(&options), *ranks[RANKS];
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int rank = 0; rank < RANKS; rank++) {
		bool own[BATCH];
		for (int i = 0; i < BATCH; i++)
			own[i] = i % RANKS == rank;
		ranks[rank] = open_data(&options);
		SUCCEEDS(smalti_training_data_deal(ranks[rank], own, rank == 0, &error), &error, "deal");
	}
	int begun_again = 0;
	damaged_rows = 0;
	for (int step = 0; step < STEPS; step++) {
		struct smalti_training_sample samples[BATCH], dealt[RANKS][BATCH];
		next(whole, samples);
		while (next_of_ranks(ranks, dealt))
			begun_again++;
		for (int i = 0; i < BATCH; i++)
			for (int rank = 0; rank < RANKS; rank++) {
				const bool own = i % RANKS == rank;
				CHECK(!dealt[rank][i].moments == !own, "values where they are needed");
				CHECK(!dealt[rank][i].caption == (!own || samples[i].dropped), "caption");
				CHECK(samples[i].height == dealt[rank][i].height &&
					  samples[i].index == dealt[rank][i].index,
				      "the same batch");
				if (own)
					check_same(&samples[i], &dealt[rank][i]);
			}
		free_samples(samples);
		for (int rank = 0; rank < RANKS; rank++)
			free_samples(dealt[rank]);
	}
	CU_ASSERT_EQUAL(begun_again, 3);
	CHECK(damaged_rows % (RANKS + 1) == 0 && damaged_rows > 3 * (RANKS + 1),
	      "all tell of it, in each epoch");
	for (int rank = 0; rank < RANKS; rank++)
		smalti_training_data_close(ranks[rank]);
	smalti_training_data_close(whole);
}

static void rows_are_dealt(void)
{
	rows_are_dealt_to_ranks(SMALTI_BUCKET_NONE);
	rows_are_dealt_to_ranks(SMALTI_BUCKET_SHAPE);
}

static void items_come_in_the_order_of_the_list(void)
{
	const struct smalti_train_options options = options_of(make_directories("text", 5), 2);
	struct smalti_training_data *data = open_data(&options);
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int round = 0; round < 2; round++) {
		struct smalti_training_sample sample;
		int64_t last = -1, count = 0;
		SUCCEEDS(smalti_training_data_rewind(data, &error), &error, "rewind");
		for (int found; (found = smalti_training_data_item(data, &sample, &error)) != 0; count++) {
			CHECK(found == 1 && sample.index > last && !sample.dropped && sample.tokens > 1,
			      "item");
			last = sample.index;
			smalti_training_sample_free(&sample);
		}
		CU_ASSERT_EQUAL(count, ITEMS - 12 + HELD_OUT - 3);
	}
	smalti_training_data_close(data);
}

static void what_does_not_fit_is_refused(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_train_options options = options_of(make_directories("another", 0), 2);
	CHECK(!smalti_training_data_open(&options, count_damage, NULL, &error), "two text encoders");
	FAILS(-1, &error, SMALTI_EINVAL, "two text encoders", "captions", "another", "text");
	error = (struct smalti_error)SMALTI_NO_ERROR;
	options = options_of(make_directories("text", 1), 1);
	struct smalti_training_data *data = open_data(&options);
	struct smalti_training_sample samples[BATCH];
	FAILS(smalti_training_data_next(data, samples, &error), &error, SMALTI_EINVAL, "no item is complete",
	      "no item has the features");
	smalti_training_data_close(data);
}

static const struct test tests[] = {
    {"directories are read as one", directories_are_read_as_one},
    {"captions are taken by weight", captions_are_taken_by_weight},
    {"positions are gone on from", positions_are_gone_on_from},
    {"rows are dealt to ranks", rows_are_dealt},
    {"items come in the order of the list", items_come_in_the_order_of_the_list},
    {"what does not fit is refused", what_does_not_fit_is_refused},
};

TEST_MAIN("data of training", tests)
