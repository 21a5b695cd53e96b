/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/device_parts.h"

int smalti_device_operand(struct smalti_device *device, enum smalti_device_slot slot,
			  const struct smalti_device_memory *x, const struct operand_arguments *a,
			  struct smalti_device_matrix *matrix, struct smalti_error *error)
{
	const int64_t count = a->rows * a->columns;
	*matrix = (struct smalti_device_matrix){x, a->first, a->stride};
	if (a->dtype == SMALTI_F32 && a->compute == SMALTI_F32)
		return 0;
	*matrix = (struct smalti_device_matrix){
	    smalti_device_scratch(device, slot, count * (int64_t)sizeof(float), error), 0, a->columns};
	const struct smalti_device_memory *const buffers[] = {x, matrix->memory};
	return matrix->memory ? smalti_device_elements(device, "operand", count, buffers, a, error) : -1;
}
