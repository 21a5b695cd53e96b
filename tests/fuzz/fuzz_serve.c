/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "serve/serve.h"

#include <math.h>

static const char *loras[] = {"style=/one", "style-2.b=/two"};

/* Adapters are files that the server has, each with a number or without. */
static void check_adapters(const char *paths)
{
	const char *at = paths;
	do {
		char *end;
		if (strncmp(at, "/one", 4) != 0 && strncmp(at, "/two", 4) != 0)
			abort();
		at += 4;
		if (*at == ':') {
			if (!isfinite(strtod(at + 1, &end)) || end == at + 1)
				abort();
			at = end;
		}
		if (*at && *at != ',')
			abort();
	} while (*at++);
}

/* Whatever the body, a request is within the limits or refused with a reason; whatever the Host, what is
 * taken for this machine's has no letters but those of its name and of hexadecimal numbers. */
FUZZER(data, size)
{
	static const struct smalti_serve_options options = {
	    .width = 1024,
	    .height = 512,
	    .steps = 50,
	    .images = 4,
	    .limits = {.waiting = 100, .of_client = 100},
	    .request = {.images = 1, .steps = 20, .guidance = 4.5},
	    .loras = {loras, COUNT_OF(loras)}};
	struct smalti_serve_request request;
	struct smalti_error error = SMALTI_NO_ERROR;
	char *body = malloc(size + 1);
	if (!body)
		abort();
	memcpy(body, data, size);
	body[size] = '\0';
	const bool form = size > 0 && body[0] == '-';
	const int status = (form ? smalti_serve_edit_read : smalti_serve_request_read)(
	    &request, body, size, &options, "tesserae", &error);
	const struct smalti_request *read = &request.request;
	if ((status < 0) != (error.code != SMALTI_OK))
		abort();
	if (status == 0 &&
	    (!read->prompt || read->images < 1 || read->images > options.images || read->steps < 1 ||
	     read->steps > options.steps || read->width > options.width || read->height > options.height))
		abort();
	if (form && status == 0 && !read->image)
		abort();
	if (status == 0 && read->lora)
		check_adapters(read->lora);
	smalti_serve_request_free(&request);
	smalti_serve_is_local_origin(body);
	if (smalti_serve_is_local(body) && strncasecmp(body, "localhost", 9) != 0 &&
	    body[strspn(body, "[]:.0123456789abcdefABCDEF")])
		abort();
	free(body);
	return 0;
}
