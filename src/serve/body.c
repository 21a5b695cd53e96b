/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/serve.h"

enum { MAX_BODIES = 256 << 20 }; /* bytes of all that are being read */

unsigned smalti_serve_body_add(struct smalti_server *server, struct smalti_serve_body *body, const char *data,
			       size_t size, size_t most)
{
	if (body->length + size > most)
		return MHD_HTTP_CONTENT_TOO_LARGE;
	char *longer =
	    server->bodies + size > MAX_BODIES ? NULL : realloc(body->data, body->length + size + 1);
	if (!longer)
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	memcpy(longer + body->length, data, size);
	body->data = longer;
	body->length += size;
	longer[body->length] = '\0';
	server->bodies += size;
	return 0;
}

void smalti_serve_body_free(struct smalti_server *server, struct smalti_serve_body *body)
{
	server->bodies -= body->length;
	free(body->data);
	*body = (struct smalti_serve_body){0};
}
