/* SPDX-License-Identifier: Apache-2.0 */
#include "shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* make_features DIRECTORY f32|f16|bf16 plain|compressed ITEMS EACH: features by formula, for tests of
 * programs that read them. */
int main(int count, char **words)
{
	static const char *const types[] = {"f32", "f16", "bf16"};
	struct smalti_shard_schema schema = {SMALTI_F32, 2,     {"prompt", "a/b"},          24, 300, 4, 512,
					     0.13025,    false, "{\"made\":\"by formula\"}"};
	if (count != 6 && count != 9)
		return 2;
	while (strcmp(types[schema.dtype], words[2]) != 0)
		if (++schema.dtype > SMALTI_BF16)
			return 2;
	schema.compress = strcmp(words[3], "compressed") == 0;
	schema.text_width = count > 6 ? strtoll(words[6], NULL, 10) : schema.text_width;
	const struct made_rows rows = {&schema, count > 6 ? strtoll(words[7], NULL, 10) : 12,
				       count > 6 ? strtoll(words[8], NULL, 10) : 6};
	struct smalti_error error = SMALTI_NO_ERROR;
	const int status = write_directory(words[1], &rows, strtoll(words[4], NULL, 10),
					   strtoll(words[5], NULL, 10), &error);
	if (status < 0)
		fprintf(stderr, "%s\n", error.message);
	return status < 0;
}
