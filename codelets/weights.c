/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "codelets/codelets.h"

/* Does nothing: the runtime makes the form before the task (rt/tile_forms.h). */
int smalti_cpu_prepare(const struct prepare_data *data, const struct prepare_arguments *a,
		       struct smalti_error *error)
{
	(void)data, (void)a, (void)error;
	return 0;
}

int smalti_cpu_read_ahead(const struct read_ahead_data *data, const struct read_ahead_arguments *a,
			  struct smalti_error *error)
{
	(void)error;
	smalti_map_read_ahead(data->weight, a->bytes);
	return 0;
}

int smalti_cpu_drop_pages(const struct drop_pages_data *data, const struct drop_pages_arguments *a,
			  struct smalti_error *error)
{
	(void)error;
	smalti_map_drop(data->weight, a->bytes);
	return 0;
}
