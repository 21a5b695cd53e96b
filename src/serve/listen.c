/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "serve/serve.h"

#include <arpa/inet.h>

static bool is_local(const struct smalti_serve_address *address)
{
	if (address->any.sa_family == AF_INET)
		return ntohl(address->four.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&address->six.sin6_addr);
}

/* Reads a host, IPv6 in brackets. */
static int read_host(struct smalti_serve_address *address, const char *host, in_port_t port)
{
	const size_t length = strlen(host);
	if (length > 2 && host[0] == '[' && host[length - 1] == ']') {
		char bare[INET6_ADDRSTRLEN + 2];
		snprintf(bare, sizeof(bare), "%.*s", (int)length - 2, host + 1);
		address->six = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
		return inet_pton(AF_INET6, bare, &address->six.sin6_addr) == 1 ? 0 : -1;
	}
	address->four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
	if (strcasecmp(host, "localhost") == 0)
		host = "127.0.0.1";
	return inet_pton(AF_INET, host, &address->four.sin_addr) == 1 ? 0 : -1;
}

int smalti_serve_address_read(struct smalti_serve_address *address, const char *text,
			      struct smalti_error *error)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	int64_t port = 0;
	*address = (struct smalti_serve_address){0};
	const size_t length = colon ? (size_t)(colon - text) : 0;
	if (length && length < sizeof(host)) {
		memcpy(host, text, length);
		host[length] = '\0';
		if (smalti_parse_int64(colon + 1, 0, UINT16_MAX, &port, NULL) == 0 &&
		    read_host(address, host, htons((uint16_t)port)) == 0) {
			address->local = is_local(address);
			return 0;
		}
	}
	return smalti_fail(error, SMALTI_EINVAL,
			   "--listen: expected an address and a port, such as 127.0.0.1:8000 or [::1]:8000, "
			   "found '%.99s'",
			   text);
}

bool smalti_serve_is_local(const char *authority)
{
	const size_t length = authority[0] == '[' ? strcspn(authority, "]") + 1 : strcspn(authority, ":");
	struct smalti_serve_address address = {0};
	char host[INET6_ADDRSTRLEN + 2];
	if (length >= sizeof(host) || length > strlen(authority))
		return false;
	snprintf(host, sizeof(host), "%.*s", (int)length, authority);
	const char *port = authority + length;
	if (*port && (*port != ':' || port[1 + strspn(port + 1, "0123456789")]))
		return false;
	return read_host(&address, host, 0) == 0 && is_local(&address);
}

bool smalti_serve_is_local_origin(const char *origin)
{
	static const char *const schemes[] = {"http://", "https://"};
	for (size_t i = 0; i < COUNT_OF(schemes); i++)
		if (strncasecmp(origin, schemes[i], strlen(schemes[i])) == 0)
			return smalti_serve_is_local(origin + strlen(schemes[i]));
	return false;
}

void smalti_serve_address_name(const struct sockaddr *address, char name[INET6_ADDRSTRLEN])
{
	enum { NETWORK = 8 }; /* bytes */
	const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;
	const void *bytes = &four->sin_addr;
	struct in6_addr network = {0};
	if (address->sa_family == AF_INET6)
		bytes = memcpy(&network, &six->sin6_addr, NETWORK);
	if (!inet_ntop(address->sa_family, bytes, name, INET6_ADDRSTRLEN))
		snprintf(name, INET6_ADDRSTRLEN, "?");
}
