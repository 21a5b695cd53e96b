/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/device_parts.h"

#include "base/dtype.h"

int smalti_device_launch_values(struct smalti_device *device, const struct smalti_device_kernels *kernels,
				const struct smalti_device_memory *const *buffers, int count,
				const void *arguments, size_t argument_bytes, struct smalti_error *error)
{
	const int64_t values = kernels->rows * kernels->columns;
	const bool eights = kernels->eights && kernels->columns % SMALTI_EIGHT == 0 &&
			    values / SMALTI_EIGHT <= (int64_t)UINT32_MAX;
	const int64_t threads = eights ? values / SMALTI_EIGHT : values;
	const struct smalti_launch launch = {eights ? kernels->eights : kernels->general,
					     (threads + SMALTI_DEVICE_THREADS - 1) / SMALTI_DEVICE_THREADS,
					     SMALTI_DEVICE_THREADS};
	return smalti_device_launch(device, &launch, buffers, count, arguments, argument_bytes, error);
}

int smalti_device_epilogue(struct smalti_device *device, const struct matmul_arguments *a,
			   const struct smalti_device_memory *z, const struct smalti_device_memory *bias,
			   const struct smalti_device_memory *gate, const struct smalti_device_memory *y,
			   struct smalti_error *error)
{
	const struct smalti_device_memory *const buffers[] = {z, bias, gate, y};
	return smalti_device_values(device, "epilogue", SMALTI_DEVICE_FORM("epilogue", a->result), a->rows,
				    a->out, buffers, a, error);
}

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
	const bool eights = !smalti_is_rows8(a->dtype) && a->compute == made.result &&
			    a->first % SMALTI_EIGHT == 0 && a->stride % SMALTI_EIGHT == 0;
	*matrix = (struct smalti_device_matrix){memory, 0, a->columns, made.result};
	return memory ? smalti_device_values(device, smalti_is_rows8(a->dtype) ? "operand_rows8" : "operand",
					     eights ? SMALTI_DEVICE_FORM("operand", made.result) : NULL,
					     a->rows, a->columns, buffers, &made, error)
		      : -1;
}
