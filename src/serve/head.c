/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/serve.h"

enum { HOST, ORIGIN, LENGTH, ENCODING, HEADERS };
static const char *const names[HEADERS] = {"Host", "Origin", "Content-Length", "Transfer-Encoding"};

/* The headers that are looked at: how often each is there, and its value. */
struct head {
	int count[HEADERS];
	const char *value[HEADERS];
	bool odd; /* a header's name or value has characters that none may have, or is of several lines */
};

/* Tells whether the library made the name of a header that decides where the request ends and of the next
 * line, which begins with a blank and so goes on with the header. */
static bool is_joined(const char *name)
{
	for (int i = LENGTH; i <= ENCODING; i++) {
		const size_t length = strlen(names[i]);
		if (strncasecmp(name, names[i], length) == 0 && name[length])
			return true;
	}
	return false;
}

/* Tells whether a value is on one line, whatever a proxy takes for the end of one. */
static bool is_plain(const char *value)
{
	for (; value && *value; value++)
		if ((unsigned char)*value < ' ' && *value != '\t')
			return false;
	return true;
}

static enum MHD_Result note(void *user, enum MHD_ValueKind kind, const char *key, const char *value)
{
	static const char known[] =
	    "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	struct head *head = user;
	(void)kind;
	head->odd |= !*key || key[strspn(key, known)] || is_joined(key) || !is_plain(value);
	for (int i = 0; i < HEADERS; i++)
		if (strcasecmp(key, names[i]) == 0) {
			head->count[i]++;
			head->value[i] = value ? value : "";
		}
	return MHD_YES;
}

/* Tells whether a proxy and the server see the same end of the request. If they do not, the rest of one
 * request is another one. */
static bool is_clear(const struct head *head, bool old)
{
	if (head->odd || head->count[LENGTH] + head->count[ENCODING] > 1)
		return false;
	return !head->count[ENCODING] || (!old && strcasecmp(head->value[ENCODING], "chunked") == 0);
}

/* Tells whether the page that asks in a browser is of this machine: a foreign site's name can be made to lead
 * here. HTTP/1.0 needs no Host, and no browser speaks it. */
static bool is_from_here(const struct head *head)
{
	return (!head->count[HOST] || smalti_serve_is_local(head->value[HOST])) &&
	       (!head->count[ORIGIN] ||
		(head->count[ORIGIN] == 1 && smalti_serve_is_local_origin(head->value[ORIGIN])));
}

/* Compares the token in a time that does not tell how much of it is right. */
static bool has_token(const struct smalti_server *server, struct MHD_Connection *connection)
{
	static const char bearer[] = "Bearer ";
	const char *given =
	    MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
	if (!given || strncasecmp(given, bearer, strlen(bearer)) != 0)
		return false;
	given += strlen(bearer);
	given += strspn(given, " ");
	const size_t length = strlen(server->token);
	if (strlen(given) != length)
		return false;
	unsigned char differs = 0;
	for (size_t i = 0; i < length; i++)
		differs |= (unsigned char)(given[i] ^ server->token[i]);
	return !differs;
}

struct smalti_serve_refusal smalti_serve_check_head(const struct smalti_server *server,
						    struct MHD_Connection *connection, const char *version,
						    bool open)
{
	const bool old = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
	struct head head = {0};
	MHD_get_connection_values(connection, MHD_HEADER_KIND, note, &head);
	if (!is_clear(&head, old))
		return (struct smalti_serve_refusal){MHD_HTTP_BAD_REQUEST,
						     "it is not clear where the request ends: expected one "
						     "Content-Length, or Transfer-Encoding: chunked"};
	if (head.count[HOST] > 1 || (!old && !head.count[HOST]))
		return (struct smalti_serve_refusal){MHD_HTTP_BAD_REQUEST, "expected one Host"};
	if (!server->token && !is_from_here(&head))
		return (struct smalti_serve_refusal){
		    MHD_HTTP_FORBIDDEN,
		    "without a --token-file only localhost, 127.x.x.x and [::1] are answered as Host, and as "
		    "Origin's"};
	if (server->token && !open && !has_token(server, connection))
		return (struct smalti_serve_refusal){MHD_HTTP_UNAUTHORIZED,
						     "expected Authorization: Bearer TOKEN"};
	return (struct smalti_serve_refusal){0};
}
