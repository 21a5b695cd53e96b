/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/op.h"

const struct smalti_op *smalti_ops;
int smalti_op_count;

enum smalti_work smalti_op_work(const char *name)
{
	for (int i = 0; i < smalti_op_count; i++)
		if (strcmp(smalti_ops[i].name, name) == 0)
			return smalti_ops[i].work;
	return SMALTI_VALUES;
}

int smalti_op_check_missing(const struct smalti_op *op, const struct smalti_buffer *buffer,
			    struct smalti_error *error)
{
	if (buffer->optional)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL, "%s: buffer '%s' is missing", op->name, buffer->name);
}
