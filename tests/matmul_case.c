/* SPDX-License-Identifier: Apache-2.0 */
#include "matmul_case.h"

#include <math.h>

const char *const epilogue_names[SMALTI_EPILOGUES] = {"none", "gelu", "silu", "add", "gate-add", "multiply"};

const struct matmul_dtypes matmul_dtypes[MATMUL_DTYPES] = {
    {SMALTI_F32, SMALTI_F32},   {SMALTI_F32, SMALTI_BF16}, {SMALTI_BF16, SMALTI_F32},
    {SMALTI_BF16, SMALTI_BF16}, {SMALTI_F32, SMALTI_F16},  {SMALTI_F16, SMALTI_F32},
    {SMALTI_F16, SMALTI_F16}};

bool matmul_has(enum smalti_epilogue epilogue, enum smalti_dtype result)
{
	const bool added = epilogue == SMALTI_EPILOGUE_ADD || epilogue == SMALTI_EPILOGUE_GATE_ADD;
	return !added || result == SMALTI_F32;
}

double matmul_finish(enum smalti_epilogue epilogue, double z, double y, double operand)
{
	switch (epilogue) {
	case SMALTI_EPILOGUE_GELU:
		return 0.5 * z * (1 + tanh(0.7978845608028654 * (z + 0.044715 * z * z * z)));
	case SMALTI_EPILOGUE_SILU:
		return z / (1 + exp(-z));
	case SMALTI_EPILOGUE_ADD:
		return y + z;
	case SMALTI_EPILOGUE_GATE_ADD:
		return y + operand * z;
	case SMALTI_EPILOGUE_MULTIPLY:
		return z * operand;
	default:
		return z;
	}
}

/* Sums of K products in f32 err by about sqrt(K) roundings; one of 16 bits by half of its last place. */
double matmul_tolerance(const struct smalti_matmul *m)
{
	static const double places[] = {[SMALTI_F16] = 1. / 2048, [SMALTI_BF16] = 1. / 256};
	return 2e-6 + 1e-7 * sqrt((double)m->in) + places[m->result];
}
