/* SPDX-License-Identifier: Apache-2.0 */
#include "samplers/draws.h"
#include "base/mix.h"
#include "samplers/diffusion_loss.h"

uint32_t smalti_stream_seed(uint64_t seed, enum smalti_stream_purpose purpose, uint64_t a, uint64_t b)
{
	const uint64_t numbers[] = {(UINT64_C(1) << 32) + (uint64_t)purpose, a, b};
	uint64_t key = smalti_mix(seed);
	for (int i = 0; i < 3; i++)
		key = smalti_mix(key + numbers[i]);
	return (uint32_t)(key >> 32);
}

struct smalti_sample_draws smalti_draw_sample(uint32_t seed)
{
	struct smalti_generator generator;
	struct smalti_sample_draws draws;
	smalti_generator_seed(&generator, seed);
	draws.timestep = smalti_mt19937_next(&generator.mt) % SMALTI_TRAINING_TIMESTEPS;
	smalti_rand(&generator, 1, &draws.drop);
	smalti_rand(&generator, 1, &draws.caption);
	return draws;
}

void smalti_draw_order(uint32_t seed, int64_t count, int64_t *order)
{
	struct smalti_mt19937 mt;
	smalti_mt19937_seed(&mt, seed);
	for (int64_t i = 0; i < count; i++)
		order[i] = i;
	for (int64_t i = 0; i + 1 < count; i++) {
		const int64_t other = i + smalti_mt19937_next(&mt) % (count - i), kept = order[i];
		order[i] = order[other];
		order[other] = kept;
	}
}
