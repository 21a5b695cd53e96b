/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sums of products of bytes, by the text that CPUs with such products run (cpu/w8a8_bytes.h), in plain C. */
#include "harness.h"
#define SMALTI_W8A8_BYTES
#include "kernels/cpu/w8a8_tiles.h"

#include <stdlib.h>
#include <string.h>

/* Makes rows of integers as kernels get them; `most`: all are 127 or −127. */
static int8_t *make_rows(int64_t rows, int64_t columns, int64_t stride, bool most, uint64_t *state)
{
	int8_t *made = malloc((size_t)(rows * stride));
	memset(made, 77, (size_t)(rows * stride)); /* what is between rows counts for nothing */
	for (int64_t r = 0; r < rows; r++)
		for (int64_t i = 0; i < columns; i++) {
			const float value = test_random(state);
			made[r * stride + i] = (int8_t)(most ? (value > -0.5f ? 127 : -127) : 127 * value);
		}
	return made;
}

static void check(int64_t rows, int64_t in, int64_t out, bool most)
{
	uint64_t state = (uint64_t)(rows + in + out);
	char what[128];
	int8_t *x = make_rows(smalti_round_up(rows, SMALTI_W8A8_ROWS), in, x_row_bytes(in), most, &state);
	int8_t *weights = make_rows(out, in, smalti_rows8_stride(in), most, &state);
	int32_t *sums = malloc((size_t)(rows * out) * sizeof(*sums));
	for (int64_t r = 0; r < rows; r++) {
		int8_t *row = x + r * x_row_bytes(in);
		int32_t sum = 0;
		for (int64_t i = 0; i < in; i++)
			sum += row[i];
		memset(row + in, 0, (size_t)(x_row_bytes(in) - in));
		complete_row(row, x_row_bytes(in), sum);
	}
	all_sums(rows, in, out, x, weights, sums);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t o = 0; o < out; o++) {
			int64_t expected = 0;
			for (int64_t i = 0; i < in; i++)
				expected +=
				    x[r * x_row_bytes(in) + i] * weights[o * smalti_rows8_stride(in) + i];
			snprintf(what, sizeof(what), "%lldx%lldx%lld at %lld, %lld", (long long)rows,
				 (long long)in, (long long)out, (long long)r, (long long)o);
			CHECK(sums[r * out + o] == expected, what);
		}
	free(x);
	free(weights);
	free(sums);
}

static void sums_are_exact(void)
{
	static const int64_t shapes[][3] = {
	    {1, 1, 1},    {1, 15, 3},   {2, 16, 4},     {5, 31, 5},   {6, 32, 7},    {7, 33, 8},
	    {13, 63, 9},  {12, 64, 4},  {3, 65, 11},    {8, 95, 5},   {6, 127, 12},  {4, 128, 13},
	    {9, 1152, 6}, {6, 4097, 4}, {1, 131072, 4}, {16, 80, 17}, {17, 513, 40}, {33, 1100, 70}};
	for (int i = 0; i < COUNT(shapes); i++)
		for (int most = 0; most < 2; most++)
			check(shapes[i][0], shapes[i][1], shapes[i][2], most);
}
