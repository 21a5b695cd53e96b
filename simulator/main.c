/* SPDX-License-Identifier: Apache-2.0 */
/* smalti-sim OPTION...: one case of `smalti simulate`, which starts it in a directory with StarPU's files of
 * the machine. StarPU's library has the program's main(), and calls this one by another name. */
#include "simulator/case.h"

#include <starpu_simgrid_wrap.h>

__attribute__((visibility("default"))) int main(int argc, char **argv)
{
	const struct smalti_option_table *table = &smalti_simulate_command.options;
	struct smalti_simulate_options options =
	    *(const struct smalti_simulate_options *)smalti_simulate_command.defaults;
	struct smalti_error error = SMALTI_NO_ERROR;
	enum smalti_invocation request;
	int first;
	int status = smalti_options_parse(table, argc, argv, &options, &request, &first, &error);
	if (status == 0)
		status = smalti_simulate_operands(&options, argc - first, argv + first, &error);
	if (status == 0)
		status = smalti_case_run(&options, &error);
	smalti_options_free(table, &options);
	if (status == 0)
		return (int)smalti_finish_stdout();
	fprintf(stderr, "%s\n", error.message);
	return error.code == SMALTI_EINVAL ? SMALTI_EXIT_USAGE : SMALTI_EXIT_FAILED;
}
