/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "base/parse.h"
#include "jobs/adapters.h"

#include <stdlib.h>
#include <string.h>

/* Whatever the text, each parser either refuses it or stays within the range asked for. */
FUZZER(data, size)
{
	char *text = strndup((const char *)data, size);
	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t number;
	if (!smalti_parse_int64(text, -5, 1 << 20, &number, &error) && (number < -5 || number > 1 << 20))
		abort();
	if (!smalti_parse_bytes(text, 1, INT64_MAX, &number, &error) && number < 1)
		abort();
	struct smalti_size extent;
	if (!smalti_parse_size(text, 8, 1 << 16, &extent, &error) && (extent.width < 8 || extent.height < 8))
		abort();
	double real;
	if (!smalti_parse_double(text, 0, 1e3, &real, &error) && !(real >= 0 && real <= 1e3))
		abort();
	uint64_t seed;
	smalti_parse_seed(text, &seed, &error);
	struct smalti_lora lora;
	if (!smalti_lora_read(text, "adapter", &lora, &error) &&
	    (!*lora.path || !(lora.weight >= -1000 && lora.weight <= 1000)))
		abort();
	free(text);
	return 0;
}
