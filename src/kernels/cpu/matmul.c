/* SPDX-License-Identifier: Apache-2.0 */
/* matmul.h on oneDNN: in one go where oneDNN does the dtypes and the epilogue fast, else in f32 with the rest
 * done here.
 *
 * Packed f32 weights, and bf16 ones where oneDNN is fast at bf16, are in its own layout. Other weights of 16
 * bits stay so in memory: they are panels of columns, each in oneDNN's f32 layout with its elements narrowed,
 * and widened into the cache for its product. All panels but the last have equally many columns; all start at
 * a multiple of the largest padding of a layout. */
#include "kernels/matmul.h"

#include "kernels/cpu/product.h"
#include "kernels/cpu/workspace.h"
#include "kernels/kernels.h"
#include "kernels/scratch.h"

enum {
	LONGEST = INT32_MAX, /* oneDNN counts with int in places */
	PANEL = 1 << 18,     /* elements wanted in a widened panel: 1 MiB, half of a level-2 cache */
	COLUMNS = 64,        /* the largest block of oneDNN's layouts along the outputs */
	DEPTH = 16           /* … and along the inputs, in f32 */
};

static int check_extents(int64_t rows, int64_t in, int64_t out, struct smalti_error *error)
{
	if (rows < 0 || in < 1 || out < 1 || rows > LONGEST || in > LONGEST || out > LONGEST)
		return smalti_fail(error, SMALTI_EINVAL,
				   "matmul of %lld rows, %lld in, %lld out: expected 1 to %d",
				   (long long)rows, (long long)in, (long long)out, LONGEST);
	return 0;
}

static bool in_panels(enum smalti_dtype compute)
{
	return compute != smalti_onednn_operands(compute);
}

static int64_t panel_columns(int64_t in)
{
	int64_t columns = PANEL / in / COLUMNS * COLUMNS;
	return columns ? columns : COLUMNS;
}

static int64_t panel_elements(int64_t in, int64_t columns)
{
	return smalti_round_up(in, DEPTH) * smalti_round_up(columns, COLUMNS);
}

static int64_t panels_bytes(int64_t in, int64_t out, struct smalti_error *error)
{
	int64_t bytes = 2;
	if (smalti_multiply(&bytes, smalti_round_up(in, DEPTH)) &&
	    smalti_multiply(&bytes, smalti_round_up(out, COLUMNS)))
		return bytes;
	return smalti_fail(error, SMALTI_ENOMEM, "%lld x %lld weights do not fit in memory", (long long)out,
			   (long long)in);
}

int64_t smalti_matmul_packed_bytes(int64_t in, int64_t out, enum smalti_dtype compute,
				   struct smalti_error *error)
{
	if (check_extents(0, in, out, error))
		return -1;
	if (in_panels(compute))
		return panels_bytes(in, out, error);
	smalti_layout layout = smalti_product_layout(in, out, compute, error);
	const int64_t bytes = layout ? (int64_t)dnnl_memory_desc_get_size(layout) : -1;
	smalti_layout_free(layout);
	return bytes;
}

static int pack_layout(smalti_const_layout layout, int64_t in, enum smalti_dtype compute,
		       const struct smalti_weight_part *parts, int64_t first, struct smalti_packed packed,
		       struct smalti_error *error)
{
	const dnnl_dims_t plain = {1, in};
	return smalti_onednn_pack(layout, 1, plain, compute, parts, first, packed, error);
}

static int pack_whole(int64_t in, int64_t out, enum smalti_dtype compute,
		      const struct smalti_weight_part *parts, struct smalti_packed packed,
		      struct smalti_error *error)
{
	smalti_layout layout = smalti_product_layout(in, out, compute, error);
	const int status = layout ? pack_layout(layout, in, compute, parts, 0, packed, error) : -1;
	smalti_layout_free(layout);
	return status;
}

static int pack_panel(int64_t in, int64_t first, int64_t columns, enum smalti_dtype compute,
		      const struct smalti_weight_part *parts, uint16_t *packed, struct smalti_error *error)
{
	const int64_t elements = panel_elements(in, columns);
	float *wide = NULL;
	int status = -1;
	smalti_layout layout = smalti_product_layout(in, columns, SMALTI_F32, error);
	if (layout && (wide = smalti_aligned_alloc(elements, sizeof(float), error))) {
		const int64_t bytes = elements * (int64_t)sizeof(float);
		memset(wide, 0, (size_t)bytes);
		status = pack_layout(layout, in, SMALTI_F32, parts, first,
				     (struct smalti_packed){wide, bytes}, error);
	}
	if (!status)
		smalti_kernels()->convert(elements, SMALTI_F32, wide, compute, packed);
	free(wide);
	smalti_layout_free(layout);
	return status;
}

int smalti_matmul_pack(int64_t in, int64_t out, enum smalti_dtype compute,
		       const struct smalti_weight_part *parts, int part_count, struct smalti_packed packed,
		       struct smalti_error *error)
{
	if (check_extents(0, in, out, error))
		return -1;
	int64_t rows = 0;
	for (int i = 0; i < part_count; i++)
		if (parts[i].rows < 0 || __builtin_add_overflow(rows, parts[i].rows, &rows))
			return smalti_fail(error, SMALTI_EINVAL, "part %d of a weight has %lld rows", i,
					   (long long)parts[i].rows);
	if (rows != out)
		return smalti_fail(error, SMALTI_EINVAL,
				   "the parts of a weight have %lld rows, expected %lld", (long long)rows,
				   (long long)out);
	if (!in_panels(compute))
		return pack_whole(in, out, compute, parts, packed, error);
	const int64_t bytes = panels_bytes(in, out, error);
	if (bytes < 0 || smalti_packed_check(packed, bytes, error))
		return -1;
	int64_t columns = panel_columns(in);
	for (int64_t first = 0; first < out; first += columns)
		if (pack_panel(in, first, out - first < columns ? out - first : columns, compute, parts,
			       (uint16_t *)packed.data + panel_elements(in, first), error))
			return -1;
	return 0;
}

/* Working memory of a matmul that is not done in one go; unneeded parts have no elements. */
struct workspace {
	float *x;       /* [rows, in]: x widened */
	float *weights; /* a panel widened */
	float *z;       /* [rows, columns]: z, or y before it is narrowed */
};

static int reserve(struct workspace *workspace, int64_t rows, int64_t in, int64_t panel, int64_t columns,
		   struct smalti_error *error)
{
	int64_t x = rows, z = rows, bytes = sizeof(float);
	if (!smalti_multiply(&x, in) || !smalti_multiply(&z, columns) || x > INT64_MAX / 4 ||
	    z > INT64_MAX / 4 || panel > INT64_MAX / 4 ||
	    !smalti_multiply(&bytes, smalti_round_up(x, LINE) + smalti_round_up(panel, LINE) + z))
		return smalti_fail(error, SMALTI_ENOMEM, "the operands of a matmul do not fit in memory");
	workspace->x = smalti_scratch(SMALTI_SCRATCH_CONVERT, bytes, error);
	if (!workspace->x)
		return -1;
	workspace->weights = workspace->x + smalti_round_up(x, LINE);
	workspace->z = workspace->weights + smalti_round_up(panel, LINE);
	return 0;
}

/* Tells whether the epilogue operates on y or another matrix, which oneDNN cannot do on a panel. */
static bool is_binary(enum smalti_epilogue epilogue)
{
	return epilogue == SMALTI_EPILOGUE_ADD || epilogue == SMALTI_EPILOGUE_GATE_ADD ||
	       epilogue == SMALTI_EPILOGUE_MULTIPLY;
}

/* Computes columns [first, first + columns) of y from z. */
static void finish(const struct smalti_matmul *matmul, int64_t first, int64_t columns, const float *z,
		   const void *operand, void *y)
{
	const struct smalti_cpu_kernels *kernels = smalti_kernels();
	int64_t size = smalti_dtype_bytes(matmul->result);
	for (int64_t row = 0; row < matmul->rows; row++, z += columns) {
		int64_t at = (row * matmul->out + first) * size;
		void *to = (char *)y + at;
		switch (matmul->epilogue) {
		case SMALTI_EPILOGUE_ADD:
			kernels->add(columns, to, z, to);
			break;
		case SMALTI_EPILOGUE_GATE_ADD:
			kernels->gate_add(columns, (const float *)operand + first, z, to);
			break;
		case SMALTI_EPILOGUE_MULTIPLY:
			kernels->multiply(columns, z, matmul->result, (const char *)operand + at, to);
			break;
		default:
			kernels->convert(columns, SMALTI_F32, z, matmul->result, to);
		}
	}
}

/* Tells whether oneDNN does all of it fast: it has no f32 products with results of 16 bits, and below AVX-512
 * only reference code for a multiplication before a sum. */
static bool in_one_go(const struct smalti_matmul *matmul)
{
	if (in_panels(matmul->compute) || (matmul->result != SMALTI_F32 && matmul->result != matmul->compute))
		return false;
	return matmul->epilogue != SMALTI_EPILOGUE_GATE_ADD || smalti_isa() >= SMALTI_ISA_AVX512;
}

static int multiply_in_steps(const struct smalti_matmul *matmul, const void *x, const void *packed,
			     const float *bias, const void *operand, void *y, struct smalti_error *error)
{
	const int64_t rows = matmul->rows, in = matmul->in, out = matmul->out;
	bool panels = in_panels(matmul->compute);
	int64_t step = panels && panel_columns(in) < out ? panel_columns(in) : out;
	struct workspace work = {NULL, NULL, NULL};
	if (reserve(&work, rows, panels ? in : 0, panels ? panel_elements(in, step) : 0, step, error))
		return -1;
	if (panels)
		smalti_kernels()->convert(rows * in, matmul->compute, x, SMALTI_F32, work.x);
	for (int64_t first = 0; first < out; first += step) {
		const struct smalti_product product = {
		    .rows = rows,
		    .in = in,
		    .out = out - first < step ? out - first : step,
		    .epilogue = is_binary(matmul->epilogue) ? SMALTI_EPILOGUE_NONE : matmul->epilogue,
		    .bias = bias != NULL,
		};
		if (panels)
			smalti_kernels()->convert(panel_elements(in, product.out), matmul->compute,
						  (const uint16_t *)packed + panel_elements(in, first),
						  SMALTI_F32, work.weights);
		if (smalti_product_run(&product, panels ? work.x : x, panels ? work.weights : packed,
				       bias ? bias + first : NULL, NULL, work.z, error))
			return -1;
		finish(matmul, first, product.out, work.z, operand, y);
	}
	return 0;
}

int smalti_matmul_check_result(const struct smalti_matmul *matmul, struct smalti_error *error)
{
	if (matmul->result == SMALTI_F32 || !smalti_epilogue_adds(matmul->epilogue))
		return 0;
	return smalti_fail(error, SMALTI_EINVAL, "a matmul's result cannot be %s where it is added",
			   smalti_dtype_name(matmul->result));
}

int smalti_matmul(const struct smalti_matmul *matmul, const void *x, const void *packed, const float *bias,
		  const void *operand, void *y, struct smalti_error *error)
{
	if (check_extents(matmul->rows, matmul->in, matmul->out, error) ||
	    smalti_matmul_check_result(matmul, error))
		return -1;
	if (!matmul->rows)
		return 0;
	if (!in_one_go(matmul))
		return multiply_in_steps(matmul, x, packed, bias, operand, y, error);
	const struct smalti_product product = {
	    .rows = matmul->rows,
	    .in = matmul->in,
	    .out = matmul->out,
	    .operands = matmul->compute,
	    .result = matmul->result,
	    .epilogue = matmul->epilogue,
	    .bias = bias != NULL,
	};
	return smalti_product_run(&product, x, packed, bias, operand, y, error);
}
