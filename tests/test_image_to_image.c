/* SPDX-License-Identifier: Apache-2.0
 *
 * Images that begin with an image, against diffusers': golden/img2img/cases.jsonl has the requests,
 * latents.safetensors the final latents of each, and some have a picture. The model is the embedded one.
 */
#include "embedded.h"
#include "golden.h"
#include "harness.h"
#include "image/picture.h"
#include "received.h"
#include "smalti/model.h"
#include "stage.h"
#include "text/prompts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CASES = 35 };

static struct smalti_session *session;
static struct smalti_model *model;

/* A picture of the golden directory; its name is the line's. */
static struct smalti_picture read_picture(const char *name, bool grey)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_picture picture = {0};
	char path[96];
	snprintf(path, sizeof(path), "golden/img2img/%s", name);
	SUCCEEDS(smalti_picture_read(&picture, test_data(path), 1 << 20, &error), &error, path);
	if (grey)
		smalti_picture_make_grey(&picture);
	return picture;
}

/* A request of a line, with its pictures. */
struct image_request {
	struct smalti_prompt_line line;
	struct smalti_picture image, mask;
	struct smalti_request request;
};

static void read_request(struct image_request *to)
{
	struct smalti_request defaults;
	smalti_request_defaults(&defaults);
	to->image = read_picture(to->line.image, false);
	if (to->line.mask)
		to->mask = read_picture(to->line.mask, true);
	struct smalti_request *r = &to->request;
	*r = smalti_request_of_line(&defaults, &to->line);
	r->width = strcmp(to->line.image, "photo.png") == 0 ? 160 : 128;
	r->height = strcmp(to->line.image, "photo.png") == 0 ? 112 : 128;
	r->image = to->image.pixels;
	r->image_width = to->image.width;
	r->image_height = to->image.height;
	r->mask = to->mask.pixels;
	r->mask_width = to->mask.width;
	r->mask_height = to->mask.height;
	if (strstr(to->line.id, "mean"))
		r->posterior = SMALTI_POSTERIOR_MEAN;
}

static void free_request(struct image_request *request)
{
	smalti_prompt_line_free(&request->line);
	smalti_picture_free(&request->image);
	smalti_picture_free(&request->mask);
}

static bool is_ddim(const char *id)
{
	return strstr(id, "ddim");
}

/* Opens the model of the reference; for DDIM with the configuration of these cases, whose timesteps are
 * leading. */
static void open_model(bool ddim)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_model_options options;
	char directory[512];
	static const char text[] = "{\"_class_name\": \"DDIMScheduler\", \"clip_sample\": false}";
	smalti_model_defaults(&options);
	options.transformer = test_data("golden/transformer-2");
	session = stage_session(NULL, 0);
	if (ddim) {
		snprintf(directory, sizeof(directory), "%s",
			 test_write("scheduler_config.json", text, sizeof(text) - 1));
		*strrchr(directory, '/') = '\0';
		options.scheduler = directory;
	}
	model = smalti_model_open(session, &options, &error);
	SUCCEEDS(model ? 0 : -1, &error, "model");
}

static void check(const struct received *received, const struct smalti_safetensors *file, const char *id)
{
	char name[96];
	const struct smalti_tensor_view *view = smalti_safetensors_find(file, id);
	float *expected = golden_values(view);
	CHECK(received_complete(received), received->error.message);
	golden_near(received->latents, expected, view->bytes / (int64_t)sizeof(float), 5e-4, id);
	snprintf(name, sizeof(name), "golden/img2img/%s.png", id);
	if (access(test_data(name), F_OK) == 0)
		received_compare(received, name, 0, 1, 1);
	free(expected);
}

/* All at the same time, in bands of several sizes. */
static void compare_with_reference(bool ddim)
{
	static const int64_t bands[] = {0, 7, 16};
	static struct image_request requests[CASES];
	static struct received received[CASES];
	struct smalti_error error = SMALTI_NO_ERROR;
	open_model(ddim);
	struct smalti_batch *batch = smalti_batch_open(model, &error);
	struct smalti_prompts *cases = smalti_prompts_open(test_data("golden/img2img/cases.jsonl"), &error);
	struct smalti_safetensors *file = golden_open("golden/img2img/latents.safetensors");
	for (int i = 0; i < CASES; i++) {
		CHECK(smalti_prompts_next(cases, &requests[i].line, &error) == SMALTI_PROMPTS_LINE,
		      error.message);
		if (is_ddim(requests[i].line.id) != ddim)
			continue;
		read_request(&requests[i]);
		requests[i].request.tile_tokens = bands[i % 3];
		if (ddim)
			requests[i].request.scheduler = NULL;
		SUCCEEDS(received_submit(model, batch, &requests[i].request, 0, &received[i], &error), &error,
			 requests[i].line.id);
	}
	smalti_batch_wait(batch);
	for (int i = 0; i < CASES; i++) {
		if (is_ddim(requests[i].line.id) == ddim)
			check(&received[i], file, requests[i].line.id);
		received_forget(&received[i]);
		free_request(&requests[i]);
	}
	memset(requests, 0, sizeof(requests));
	smalti_safetensors_close(file);
	smalti_prompts_close(cases);
	smalti_batch_close(batch);
	embedded_close(session, model);
}

static void reference(void)
{
	compare_with_reference(false);
}

static void reference_of_ddim(void)
{
	compare_with_reference(true);
}

/* Fills a request that begins with an image of noise, of which a mask keeps the left half. */
static void fill(struct smalti_request *request, unsigned char *image, unsigned char *mask)
{
	uint64_t state = 1;
	smalti_request_defaults(request);
	request->prompt = "a red star";
	request->width = request->image_width = request->mask_width = 48;
	request->height = request->image_height = request->mask_height = 32;
	request->steps = 4;
	for (int i = 0; i < 48 * 32 * 3; i++)
		image[i] = (unsigned char)(127.5f + 127 * test_random(&state));
	for (int i = 0; i < 48 * 32; i++)
		mask[i] = i % 48 < 24 ? 127 : 128;
	request->image = image;
	request->mask = mask;
}

/* The second of two images differs from the first, and what is kept is kept in both. */
static void kept_pixels_are_the_originals(void)
{
	static unsigned char image[48 * 32 * 3], mask[48 * 32];
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_request request;
	struct received received[2] = {0};
	fill(&request, image, mask);
	request.images = 2;
	request.keep_original = true;
	request.scheduler = "sa-solver";
	open_model(false);
	struct smalti_batch *batch = smalti_batch_open(model, &error);
	for (int i = 0; i < 2; i++)
		SUCCEEDS(received_submit(model, batch, &request, i, &received[i], &error), &error, "submit");
	CHECK(request.strength == 1, "strength with a mask");
	smalti_batch_close(batch);
	int kept = 0, same = 0;
	for (int i = 0; i < 2; i++)
		CHECK(received_complete(&received[i]), received[i].error.message);
	for (int i = 0; i < 48 * 32 * 3; i++) {
		const bool left = i / 3 % 48 < 24;
		kept += left && received[0].rgb[i] == image[i] && received[1].rgb[i] == image[i];
		same += !left && received[0].rgb[i] == received[1].rgb[i];
	}
	CHECK(kept == 24 * 32 * 3, "kept");
	CHECK(same < 12 * 32 * 3, "the others differ");
	received_forget(&received[0]);
	received_forget(&received[1]);
	embedded_close(session, model);
}

static void what_cannot_be_done_is_refused(void)
{
	static unsigned char image[48 * 32 * 3], mask[48 * 32];
	static const float latents[4 * 4 * 6];
	static const struct {
		const char *what, *words[2];
		double strength;
		int64_t width, image_width;
		bool no_image, no_mask, keeps, latents;
		const char *scheduler;
	} cases[] = {
	    {.what = "no image", .words = {"mask", "needs an image"}, .no_image = true},
	    {.what = "strength alone",
	     .words = {"strength"},
	     .strength = 0.5,
	     .no_image = true,
	     .no_mask = true},
	    {.what = "nothing kept", .words = {"keep_original", "mask"}, .no_mask = true, .keeps = true},
	    {.what = "no step", .words = {"strength 0.2", "0.25"}, .strength = 0.2},
	    {.what = "above 1", .words = {"strength", "1.5"}, .strength = 1.5},
	    {.what = "few of LCM",
	     .words = {"original_inference_steps", "0.05"},
	     .strength = 0.05,
	     .scheduler = "lcm"},
	    {.what = "width", .words = {"multiples of 16", "50x32"}, .width = 50},
	    {.what = "no pixels", .words = {"image", "0x32"}, .image_width = -1},
	    {.what = "latents, too", .words = {"latents", "exclude"}, .latents = true},
	};
	open_model(false);
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_request request;
		fill(&request, image, mask);
		request.strength = cases[i].strength;
		request.width = cases[i].width ? cases[i].width : request.width;
		request.image_width = cases[i].image_width ? 0 : request.image_width;
		request.image = cases[i].no_image ? NULL : image;
		request.mask = cases[i].no_mask || (cases[i].no_image && cases[i].strength > 0) ? NULL : mask;
		request.keep_original = cases[i].keeps;
		request.latents = cases[i].latents ? latents : NULL;
		request.latents_count = COUNT(latents);
		request.scheduler = cases[i].scheduler;
		FAILS(smalti_request_resolve(model, &request, &error) ? 0 : -1, &error, SMALTI_EINVAL,
		      cases[i].what, cases[i].words[0], cases[i].words[1]);
	}
	embedded_close(session, model);
}

static const struct test tests[] = {
    {"equal to the reference", reference},
    {"equal to the reference with DDIM", reference_of_ddim},
    {"kept pixels are the originals", kept_pixels_are_the_originals},
    {"what cannot be done is refused", what_cannot_be_done_is_refused},
};

TEST_MAIN("image to image", tests)
