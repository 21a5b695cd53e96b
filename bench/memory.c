/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool smalti_peak_reset(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "w");
	if (!file)
		return false;
	const bool written = fputs("5", file) >= 0; /* see proc(5) */
	return fclose(file) == 0 && written;
}

int64_t smalti_peak_read(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	static const char key[] = "VmHWM:";
	char line[256];
	int64_t bytes = -1;
	while (bytes < 0 && file && fgets(line, sizeof(line), file))
		if (strncmp(line, key, strlen(key)) == 0)
			bytes = strtoll(line + strlen(key), NULL, 10) * 1024; /* in kB */
	if (file)
		fclose(file);
	return bytes;
}
