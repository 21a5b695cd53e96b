/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/device_parts.h"

#include "base/dtype.h"

int smalti_device_operand(struct smalti_device *device, enum smalti_device_slot slot,
			  const struct smalti_device_memory *x, const struct operand_arguments *a,
			  struct smalti_device_matrix *matrix, struct smalti_error *error)
{
	const int64_t count = a->rows * a->columns;
	struct operand_arguments made = *a;
	made.result = smalti_device_operands(device, a->compute);
	*matrix = (struct smalti_device_matrix){x, a->first, a->stride, made.result};
	if (a->dtype == a->compute && a->compute == made.result)
		return 0;
	const struct smalti_device_memory *memory =
	    smalti_device_scratch(device, slot, count * smalti_dtype_bytes(made.result), error);
	const struct smalti_device_memory *const buffers[] = {x, memory};
	*matrix = (struct smalti_device_matrix){memory, 0, a->columns, made.result};
	return memory ? smalti_device_elements(device, "operand", count, buffers, &made, error) : -1;
}
