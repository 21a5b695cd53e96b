/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of training: whatever of one is damaged is refused, and later ones have nothing of it. */
#include "base/file.h"
#include "base/sealed.h"
#include "checkpoint/safetensors.h"
#include "harness.h"
#include "rt/session.h"
#include "train/initial.h"
#include "train/saved.h"

#include <fcntl.h>
#include <ftw.h>
#include <xxhash.h>

static const struct smalti_transformer_config tiny = {
    .layers = 1,
    .heads = 2,
    .head_dim = 4,
    .width = 8,
    .in_channels = 4,
    .out_channels = 8,
    .patch_size = 2,
    .sample_size = 8,
    .caption_channels = 5,
    .interpolation_scale = 1,
    .norm_eps = 1e-6,
    .attention_bias = true,
};
static char config_text[] = "{\"num_layers\": 1}\n";

static struct smalti_session *session;
static const struct smalti_train_options adamw = {.ema = 0.9, .seed = 1},
					 came = {.ema = 0.9, .optimizer.kind = SMALTI_OPTIMIZER_CAME},
					 adapter = {.ema = 0.9, .lora = {.rank = 2, .targets = "attention"}};

static void open_trainer(struct smalti_trainer *trainer, const struct smalti_train_options *options,
			 const struct smalti_transformer_config *config)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_shard_schema schema = {.dtype = SMALTI_F32, .scaling_factor = 1};
	float values[] = {1, 2, 3, 4, 5};
	const struct smalti_null_caption null_caption = {values, 1, config->caption_channels};
	SUCCEEDS(smalti_trainer_open(trainer, session, options, config, &error), &error, "trainer");
	smalti_trainer_set_data(trainer, &schema, &null_caption);
	smalti_initial_values(trainer->parameters, trainer->task_group, options->seed);
	SUCCEEDS(smalti_trainer_begin(trainer, &error), &error, "begin");
}

/* As the run's step `step`; its directory, good until the fourth next call. */
static const char *write_checkpoint(const char *run, struct smalti_trainer *trainer, int64_t step)
{
	static char paths[4][512];
	static int next;
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_data_position position = {.epoch = 1};
	struct smalti_saved saved = {.identity = cJSON_CreateObject(), .config = config_text};
	char *path = paths[next++ % 4];
	trainer->state.steps = step;
	SUCCEEDS(smalti_saved_write(run, &saved, trainer, &position, 0, &error), &error, "write");
	cJSON_Delete(saved.identity);
	snprintf(path, sizeof(paths[0]), "%s/step-%" PRId64, run, step);
	return path;
}

static int load(const char *run, struct smalti_trainer *trainer, struct smalti_error *error)
{
	struct smalti_saved saved;
	int status = smalti_saved_read(run, &saved, error) == 1 ? 0 : -1;
	if (status == 0)
		status = smalti_saved_load(&saved, trainer, error);
	CHECK(!saved.config, "a configuration from a checkpoint");
	smalti_saved_free(&saved);
	return status;
}

struct file {
	char path[512];
	int64_t bytes;
};
enum { FILES = 7, ADAPTER_FILES = 9 }; /* of a checkpoint; an adapter's weights have two forms */
static struct file files[ADAPTER_FILES + 1];
static int file_count;

static int note_file(const char *path, const struct stat *status, int kind)
{
	if (kind == FTW_F && file_count <= ADAPTER_FILES) {
		snprintf(files[file_count].path, sizeof(files[0].path), "%s", path);
		files[file_count++].bytes = status->st_size;
	}
	return 0;
}

/* The bits of a byte. */
static void flip(const struct file *file, int64_t at, unsigned char bits)
{
	unsigned char byte = 0;
	const int fd = open(file->path, O_RDWR | O_CLOEXEC);
	CHECK(pread(fd, &byte, 1, at) == 1, file->path);
	byte ^= bits;
	CHECK(pwrite(fd, &byte, 1, at) == 1, file->path);
	close(fd);
}

static void check_damage(const char *run, struct smalti_trainer *trainer, const struct file *file,
			 const char *what)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	FAILS(load(run, trainer, &error), &error, SMALTI_ECORRUPT, what, file->path, "remove its directory");
}

/* One byte: all of them with SMALTI_TEST_FULL=1, else some in each part of the file. */
static void flip_each(const char *run, struct smalti_trainer *trainer, const struct file *file)
{
	const int64_t step = getenv("SMALTI_TEST_FULL") ? 1 : smalti_max(1, file->bytes / 61);
	for (int64_t at = 0; at < file->bytes; at += step) {
		char what[64];
		const unsigned char bits = (unsigned char)(1 << at % 8);
		snprintf(what, sizeof(what), "byte %" PRId64, at);
		flip(file, at, bits);
		check_damage(run, trainer, file, what);
		flip(file, at, bits);
	}
}

static void cut_and_lose(const char *run, struct smalti_trainer *trainer, const struct file *file)
{
	size_t length;
	char *bytes = smalti_file_read(file->path, 1 << 24, &length, NULL);
	CHECK(bytes && truncate(file->path, file->bytes / 2) == 0, file->path);
	check_damage(run, trainer, file, "cut");
	unlink(file->path);
	check_damage(run, trainer, file, "lost");
	FILE *stream = fopen(file->path, "wb");
	CHECK(stream && fwrite(bytes, 1, length, stream) == length && fputc('\n', stream) == '\n', "write");
	fclose(stream);
	check_damage(run, trainer, file, "longer");
	CHECK(truncate(file->path, file->bytes) == 0, file->path);
	free(bytes);
}

static void refuse_damage(const struct smalti_train_options *options, int expected)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_trainer trainer;
	const char *run = test_scratch();
	open_trainer(&trainer, options, &tiny);
	const char *directory = write_checkpoint(run, &trainer, 3);
	file_count = 0;
	ftw(directory, note_file, 4);
	CU_ASSERT_EQUAL(file_count, expected);
	for (int i = 0; i < file_count; i++) {
		flip_each(run, &trainer, &files[i]);
		cut_and_lose(run, &trainer, &files[i]);
	}
	SUCCEEDS(load(run, &trainer, &error), &error, "mended");
	CU_ASSERT_EQUAL(trainer.state.steps, 3);
	char other[512];
	snprintf(other, sizeof(other), "%s/step-9", run);
	CHECK(rename(directory, other) == 0, other);
	FAILS(load(run, &trainer, &error), &error, SMALTI_ECORRUPT, "another step's", "it is of step 3",
	      "step-9/state.json");
	smalti_trainer_close(&trainer);
}

static void every_damage_is_refused(void)
{
	refuse_damage(&adamw, FILES);
	refuse_damage(&adapter, ADAPTER_FILES);
}

/* Nothing is damaged where the tensors are another optimizer's or transformer's. */
static void other_tensors_are_no_damage(void)
{
	struct smalti_transformer_config larger = tiny;
	larger.layers = 2;
	const struct {
		const struct smalti_train_options *options;
		const struct smalti_transformer_config *config;
		const char *file;
	} settings[] = {
	    {&adamw, &tiny, "optimizer"}, {&came, &tiny, "optimizer"}, {&adamw, &larger, "transformer/"}};
	for (int i = 0; i < COUNT(settings) * COUNT(settings); i++) {
		const int was = i / COUNT(settings), is = i % COUNT(settings);
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_trainer trainer;
		const char *run = test_scratch();
		open_trainer(&trainer, settings[was].options, settings[was].config);
		write_checkpoint(run, &trainer, 1);
		smalti_trainer_close(&trainer);
		open_trainer(&trainer, settings[is].options, settings[is].config);
		if (was == is)
			SUCCEEDS(load(run, &trainer, &error), &error, "the same");
		else
			FAILS(load(run, &trainer, &error), &error, SMALTI_EINVAL, "another",
			      settings[smalti_max(was, is)].file, "of another optimizer or transformer",
			      "(--transformer)");
		CHECK(!strstr(error.message, "damaged"), error.message);
		smalti_trainer_close(&trainer);
	}
}

/* Of the tensors' bytes, which end the file. */
static void digest_values(const char *directory, const char *name, cJSON *digests)
{
	char path[600], text[SMALTI_HEX_DIGITS + 1];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	struct smalti_safetensors *file = smalti_safetensors_open(path, NULL);
	int64_t bytes = 0;
	for (int64_t i = 0; i < file->count; i++)
		bytes += file->tensors[i].bytes;
	const char *end = (const char *)file->map.data + file->map.size;
	smalti_hex_print(XXH3_64bits(end - bytes, (size_t)bytes), text);
	cJSON_ReplaceItemInObjectCaseSensitive(digests, name, cJSON_CreateString(text));
	smalti_safetensors_close(file);
}

/* As checkpoints were before configurations and headers had digests. */
static void make_first_layout(const char *directory)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	char path[600];
	snprintf(path, sizeof(path), "%s/state.json", directory);
	cJSON *state = smalti_sealed_read(path, &error), *next;
	cJSON *digests = cJSON_GetObjectItemCaseSensitive(state, "files");
	cJSON_ReplaceItemInObjectCaseSensitive(state, "version", cJSON_CreateNumber(1));
	cJSON_DeleteItemFromObjectCaseSensitive(state, "xxh3");
	for (cJSON *file = digests->child; file; file = next) {
		next = file->next;
		if (strstr(file->string, ".json"))
			cJSON_DeleteItemFromObjectCaseSensitive(digests, file->string);
	}
	static const char *const names[] = {"transformer/diffusion_pytorch_model.safetensors",
					    "ema/diffusion_pytorch_model.safetensors",
					    "optimizer.safetensors", "null_caption.safetensors"};
	for (int i = 0; i < COUNT(names); i++)
		digest_values(directory, names[i], digests);
	CU_ASSERT_EQUAL(cJSON_GetArraySize(digests), COUNT(names));
	SUCCEEDS(smalti_sealed_write(path, state, &error), &error, path);
	cJSON_Delete(state);
}

static void the_first_layout_is_read_on(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_trainer trainer;
	const char *run = test_scratch();
	open_trainer(&trainer, &adamw, &tiny);
	const char *directory = write_checkpoint(run, &trainer, 1);
	struct file weights, config;
	size_t length;
	snprintf(weights.path, sizeof(weights.path), "%s/optimizer.safetensors", directory);
	snprintf(config.path, sizeof(config.path), "%s/transformer/config.json", directory);
	make_first_layout(directory);
	free(smalti_file_read(weights.path, 1 << 24, &length, NULL));
	flip(&weights, (int64_t)length - 1, 1);
	check_damage(run, &trainer, &weights, "values");
	flip(&weights, (int64_t)length - 1, 1);
	flip(&config, 3, 1);
	SUCCEEDS(load(run, &trainer, &error), &error, "first layout");
	snprintf(config.path, sizeof(config.path), "%s/transformer/config.json",
		 write_checkpoint(run, &trainer, 2));
	char *text = smalti_file_read(config.path, 1 << 20, &length, NULL);
	CU_ASSERT_STRING_EQUAL(text, config_text);
	free(text);
	smalti_trainer_close(&trainer);
}

static const struct test tests[] = {
    {"every damage is refused", every_damage_is_refused},
    {"other tensors are no damage", other_tensors_are_no_damage},
    {"the first layout is read on", the_first_layout_is_read_on},
};

TEST_PROGRAM()
{
	struct smalti_error error = SMALTI_NO_ERROR;
	session = smalti_session_open_sequential(&error);
	if (!session) {
		fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	const int status = test_main("checkpoints of training", tests, COUNT(tests));
	smalti_session_close(session, NULL);
	return status;
}
