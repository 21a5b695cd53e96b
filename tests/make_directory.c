/* SPDX-License-Identifier: Apache-2.0 */
/* Usage: make_directory DIRECTORY f32|f16|bf16 CAPTIONS LATENT_HEIGHT SHARD_ITEMS FAILED <KEYS
 * A directory of features (features_directory.h) for tests of the command: a key per line, captions NAME or
 * NAME,NAME or "". */
#include "features_directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 100000, TEXT_WIDTH = 24, MAX_TOKENS = 20, CHANNELS = 4 };

static enum smalti_dtype parse_dtype(const char *name)
{
	for (int i = SMALTI_F32; i <= SMALTI_BF16; i++)
		if (strcmp(name, smalti_dtype_name((enum smalti_dtype)i)) == 0)
			return (enum smalti_dtype)i;
	fprintf(stderr, "no type: %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	static char *keys[KEYS];
	char *line = NULL;
	size_t size = 0;
	if (argc != 7)
		return 2;
	struct features_directory directory = {
	    .dtype = parse_dtype(argv[2]),
	    .keys = (const char *const *)keys,
	    .text_width = TEXT_WIDTH,
	    .max_tokens = MAX_TOKENS,
	    .latent_height = atoi(argv[4]),
	    .latent_channels = atoi(argv[4]) ? CHANNELS : 0,
	    .shard_items = atoi(argv[5]),
	    .failed = atoi(argv[6]),
	};
	for (char *rest = argv[3]; rest && *rest && directory.caption_count < 2;)
		directory.captions[directory.caption_count++] = strsep(&rest, ",");
	for (ssize_t length; directory.count < KEYS && (length = getline(&line, &size, stdin)) > 0;) {
		line[length - 1] = '\0';
		keys[directory.count++] = strdup(line);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	const int status = make_features_directory(argv[1], &directory, &error);
	if (status)
		fprintf(stderr, "%s\n", error.message);
	for (int64_t i = 0; i < directory.count; i++)
		free(keys[i]);
	free(line);
	return status ? 1 : 0;
}
