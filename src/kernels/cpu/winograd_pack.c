/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/suffix.h"
#include "kernels/cpu/winograd.h"

enum { TAPS = 9 };

/* Computes G: three taps to the six points. */
INLINE void to_points(const vec g[3], vec u[WINOGRAD_SIDE])
{
	const float third = 1 / 3.f, sixth = 1 / 6.f, root = 0x1.6a09e6p0f;
	const vec even = (g[0] * 2.f + g[2]) * -third, odd = g[1] * (-third * root);
	const vec far_even = (g[0] + g[2] * 2.f) * sixth, far_odd = g[1] * (sixth * root);
	u[0] = g[0];
	u[1] = even + odd;
	u[2] = even - odd;
	u[3] = far_even + far_odd;
	u[4] = far_even - far_odd;
	u[5] = g[2];
}

/* Transforms the taps of one input channel, a lane per output channel. */
INLINE void transform(const vec taps[TAPS], int64_t stride, float *to)
{
	vec rows[WINOGRAD_SIDE][3];
	UNROLL
	for (int column = 0; column < 3; column++) {
		const vec g[3] = {taps[column], taps[3 + column], taps[6 + column]};
		vec u[WINOGRAD_SIDE];
		to_points(g, u);
		UNROLL
		for (int i = 0; i < WINOGRAD_SIDE; i++)
			rows[i][column] = u[i];
	}
	UNROLL
	for (int i = 0; i < WINOGRAD_SIDE; i++) {
		vec u[WINOGRAD_SIDE];
		to_points(rows[i], u);
		UNROLL
		for (int j = 0; j < WINOGRAD_SIDE; j++)
			vec_store(to + (i * WINOGRAD_SIDE + j) * stride, u[j]);
	}
}

/* Gathers the taps of LANES × LANES channels from [out, in, 3, 3], transposed so that output channels are
 * lanes. */
static void gather(const struct smalti_conv *conv, int64_t outs, const void *weight, enum smalti_dtype dtype,
		   int64_t first_out, int64_t first_in, vec taps[TAPS * LANES])
{
	const int64_t in = conv->in, there = (in - first_in) * TAPS;
	for (int64_t at = 0; at < TAPS * LANES; at += LANES) {
		vec rows[LANES] = {0};
		for (int64_t o = 0; o < outs && at < there; o++)
			rows[o] =
			    vec_round(conv->compute,
				      vec_read(dtype, weight, ((first_out + o) * in + first_in) * TAPS + at,
					       there - at));
		vec_transpose(rows);
		memcpy(taps + at, rows, sizeof(rows));
	}
}

int64_t FOR_ISA(smalti_winograd_packed)(int64_t in, int64_t out)
{
	return WINOGRAD_POINTS * winograd_point_floats(in, out);
}

void FOR_ISA(smalti_winograd_pack)(const struct smalti_conv *conv, const void *weight,
				   enum smalti_dtype dtype, float *packed)
{
	const int64_t in = conv->in, out = conv->out;
	const int64_t stride = winograd_point_floats(in, out), deep = smalti_round_up(in, LANES);
	for (int64_t o = 0; o < out; o += LANES) {
		const int64_t panel = o / PANEL * PANEL;
		const int64_t wide = smalti_min(smalti_round_up(out, LANES) - panel, PANEL);
		for (int64_t i = 0; i < deep; i += LANES) {
			vec taps[TAPS * LANES];
			gather(conv, smalti_min(out - o, LANES), weight, dtype, o, i, taps);
			for (int64_t lane = 0; lane < LANES; lane++)
				transform(taps + lane * TAPS, stride,
					  packed + panel * deep + (i + lane) * wide + o - panel);
		}
	}
}
