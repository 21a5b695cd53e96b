/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cases.h"

static int drop_rows(void *user, int64_t first, int64_t rows, int64_t width, const float *pixels,
		     struct smalti_error *error)
{
	(void)user, (void)first, (void)rows, (void)width, (void)pixels, (void)error;
	return 0;
}

static int no_rows(void *user, int64_t first, int64_t rows, int64_t width, float *pixels,
		   struct smalti_error *error)
{
	(void)user, (void)first, (void)rows, (void)width, (void)pixels, (void)error;
	return 0;
}

static int write_nothing(void *user, int64_t offset, int64_t bytes, const void *data,
			 struct smalti_error *error)
{
	(void)user, (void)offset, (void)bytes, (void)data, (void)error;
	return 0;
}

static int read_nothing(void *user, int64_t offset, int64_t bytes, bool last, void *data,
			struct smalti_error *error)
{
	(void)user, (void)offset, (void)bytes, (void)last, (void)data, (void)error;
	return 0;
}

static int drop_floats(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)user, (void)count, (void)values, (void)error;
	return 0;
}

/* Ops whose products are of the precision that is measured. */
static bool multiplies(enum smalti_op_number op)
{
	switch (op) {
	case SMALTI_OP_matmul:
	case SMALTI_OP_attention:
	case SMALTI_OP_conv:
		return true;
	default:
		return false;
	}
}

int smalti_bench_each(enum smalti_dtype precision,
		      int (*visit)(void *user, const struct smalti_bench_case *c), void *user)
{
	const enum smalti_dtype T = precision, WIDE = T == SMALTI_F16 ? SMALTI_F32 : T; /* graphs/t5.c */
	int status;
#define CASE(codelet, text, ...)                                                                             \
	if ((status = visit(user, &(const struct smalti_bench_case){                                         \
				      .op = SMALTI_OP_##codelet,                                             \
				      .label = (text),                                                       \
				      .name = #codelet " " text,                                             \
				      .compute = multiplies(SMALTI_OP_##codelet) ? T : SMALTI_F32,           \
				      .direct = SMALTI_OP_##codelet == SMALTI_OP_conv,                       \
				      .arguments = &(const struct codelet##_arguments){__VA_ARGS__},         \
				  })))                                                                       \
		return status;
#include "bench/cases.def"
	return 0;
}
