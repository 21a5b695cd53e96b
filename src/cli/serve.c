/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/serve.h"
#include "cli/command.h"
#include "cli/common_rows.h"
#include "cli/signals.h"

#define TYPE struct smalti_serve_options

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Server")},
    {SMALTI_STRING(TYPE, listen), "listen", 'l', "ADDRESS:PORT",
     "listen there; port 0: one that is free; an address that other machines reach needs --token-file"},
    {SMALTI_STRING(TYPE, token_file), "token-file", 0, "FILE",
     "answer only requests with \"Authorization: Bearer TOKEN\", where TOKEN is the first line of FILE"},
    {SMALTI_FLAG(TYPE, quiet), "quiet", 'q', NULL, "print errors only"},

    {SMALTI_GROUP("Limits")},
    {SMALTI_INT64(TYPE, limits.waiting), "max-waiting", 0, "N",
     "images that may wait; beyond them requests are answered by 503", .minimum = 1, .maximum = 1000000},
    {SMALTI_INT64(TYPE, limits.of_client), "max-waiting-of-client", 0, "N",
     "images of one address that may wait; beyond them its requests are answered by 429", .minimum = 1,
     .maximum = 1000000},
    {SMALTI_INT64(TYPE, limits.rate), "rate", 0, "N",
     "requests for images that one address may make in a minute; 0: any number", .minimum = 0,
     .maximum = 1000000},
    {SMALTI_SIZE(TYPE, width, height), "max-size", 0, "WxH", "largest images", .minimum = SMALTI_SIDE_MIN,
     .maximum = SMALTI_SIDE_MAX},
    {SMALTI_INT64(TYPE, steps), "max-steps", 0, "N", "most steps of an image", .minimum = 1,
     .maximum = SMALTI_STEPS_MAX},
    {SMALTI_INT64(TYPE, images), "max-images", 0, "N", "most images of a request", .minimum = 1,
     .maximum = 1000},

    {SMALTI_GROUP("What a request does not say")},
    {SMALTI_INT64(TYPE, request.steps), "steps", 0, "N", "number of denoising steps", .minimum = 1,
     .maximum = SMALTI_STEPS_MAX, .alias = "num-inference-steps"},
    {SMALTI_DOUBLE(TYPE, request.guidance), "guidance", 'g', "X", "classifier-free guidance scale",
     .real_minimum = 0, .real_maximum = 1000, .alias = "guidance-scale"},
    SMALTI_CLEANING_ROW(TYPE, request.cleaning, "prompts"),

    {SMALTI_GROUP("Model")},
    SMALTI_MODEL_ROW(TYPE, model.directory),
    SMALTI_VARIANT_ROW(TYPE, model.variant),
    SMALTI_PRECISION_ROW(TYPE, model.precision),
    {SMALTI_LIST(TYPE, loras), "lora", 0, "NAME=PATH",
     "let requests use the LoRA adapter in PATH by \"lora\": \"NAME\" or \"NAME:WEIGHT\""},

    {SMALTI_GROUP("Machine")},
    SMALTI_SESSION_ROWS(TYPE),
    SMALTI_TOKEN_SHARES_ROW(TYPE, request.shares),
    SMALTI_STRATEGY_ROW(TYPE, request.strategy),
};

static const struct smalti_serve_options defaults = {
    .listen = "127.0.0.1:8000",
    .width = 2048,
    .height = 2048,
    .steps = 100,
    .images = 10,
    .limits = {.waiting = 256, .of_client = 64},
    .request = {.images = 1, .steps = 20, .guidance = 4.5, .cleaning = SMALTI_CLEANING_BASIC},
    .session = SMALTI_SESSION_DEFAULTS,
};

static const struct smalti_example examples[] = {
    {"Serve the embedded model, then open http://127.0.0.1:8000 in a browser", "smalti serve"},
    {"Ask for an image",
     "curl -H 'Content-Type: application/json' -H 'Accept: image/png' -d '{\"prompt\": \"a red star\"}' -o "
     "star.png "
     "http://127.0.0.1:8000/v1/images/generations"},
    {"Serve other machines, too", "smalti serve --listen 0.0.0.0:8000 --token-file token.txt --rate 60"},
    {NULL, NULL},
};

static void cancel(void *batch)
{
	smalti_batch_cancel(batch);
}

static void say_address(const struct smalti_server *server)
{
	const char *text = server->options->listen;
	if (server->options->quiet)
		return;
	printf("listening on http://%.*s:%d\n", (int)(strrchr(text, ':') - text), text,
	       smalti_serve_port(server));
	fflush(stdout);
}

static int serve(struct smalti_server *server, struct smalti_error *error)
{
	if (smalti_server_prepare(server, error) < 0)
		return -1;
	server->session = smalti_held_session(&server->options->session, error);
	if (!server->session || smalti_server_start(server, error) < 0)
		return -1;
	say_address(server);
	smalti_signals_second(cancel, server->batch);
	smalti_server_work(server);
	smalti_signals_second(NULL, NULL);
	return 0;
}

static enum smalti_exit run(void *options, int count, char **operands)
{
	struct smalti_server server = {.options = options};
	struct smalti_error error = SMALTI_NO_ERROR;
	if (count > 0)
		return smalti_usage_error(&smalti_serve_command, "unexpected operand '%.99s'", operands[0]);
	smalti_signals_first(smalti_server_stop, &server);
	smalti_signals_catch();
	enum smalti_exit status = SMALTI_EXIT_OK;
	if (serve(&server, &error) < 0)
		status = smalti_command_fail(&smalti_serve_command, &error);
	error = (struct smalti_error)SMALTI_NO_ERROR;
	if (smalti_server_close(&server, &error) < 0)
		status = smalti_command_fail(&smalti_serve_command, &error);
	smalti_signals_first(NULL, NULL);
	return status;
}

const struct smalti_command smalti_serve_command = {
    .name = "smalti serve",
    .summary = "generate images for requests over HTTP",
    .operands = "",
    .description =
	"Answers requests for images: POST /v1/images/generations takes the JSON of OpenAI's image API with "
	"the names of diffusers besides, POST /v1/images/edits a form with an image to begin with "
	"(docs/serve.md). Many requests are computed at the same time; those "
	"that wait take turns by address. GET / is a page to try it, /health and /metrics are for "
	"monitoring.\n\nAfter SIGINT or SIGTERM the images in progress are finished and sent, and requests "
	"that "
	"wait are answered by 503. Then the server ends with 0. A second signal drops the images.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run,
    .alone = true,
};
