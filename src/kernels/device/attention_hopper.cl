/* SPDX-License-Identifier: Apache-2.0 */

/* attend() in f16 and bf16 for compute capability 9.0, where heads have one of a few sizes. A group takes
 * shares, of the queries of one head, until none is left. Two or three of its teams have 64 of the queries
 * each, and go through the keys 128 at a time; a thread of the last one has queries, and tiles of keys and
 * values, copied to local memory, some ahead, also those of the next share. A team softens the scores of a
 * tile while the tensor cores weigh the values of the one before, and while the other teams' products are
 * computed: they take turns.
 *
 * Between products and the wait for them must be no branch, and indices of arrays have to be constants: else
 * the compiler waits for each product, or has arrays in memory. */
enum {
	TILE = SMALTI_HOPPER_KEYS,
	PANEL_BYTES = 2 * SMALTI_HOPPER_PANEL * TILE,
	VALUES_TOGETHER = 1 /* one product has all columns of values, though they are in several panels */
};

/* Extents of a head, the teams that multiply, and where everything is in local memory: tiles, and barriers of
 * eight bytes each. */
template <int head_dim, int teams> struct hopper {
	enum {
		HEAD_DIM = head_dim,
		PANELS = head_dim / SMALTI_HOPPER_PANEL,
		NARROW = SMALTI_HOPPER_NARROW(head_dim), /* columns */
		NARROW_MIXTURE = NARROW == 16 ? MIXED_32 : MIXED_64,
		VALUE_PANELS = (head_dim + SMALTI_HOPPER_PANEL - 1) / SMALTI_HOPPER_PANEL,
		KEY_BYTES = SMALTI_HOPPER_KEY_BYTES(head_dim),
		VALUE_BYTES = SMALTI_HOPPER_VALUE_BYTES(head_dim),
		STAGES = SMALTI_HOPPER_STAGES,
		ROW_BYTES = SMALTI_HOPPER_ROW_BYTES(head_dim),
		TEAMS = teams,
		SHARE = SMALTI_HOPPER_QUERIES(teams),
		QUERY_PANEL_BYTES = 2 * SMALTI_HOPPER_PANEL * SHARE,
		LOADING_REGISTERS = teams == 3 ? 32 : 24,
		MULTIPLYING_REGISTERS = teams == 3 ? 160 : 240
	};
	uint queries, keys, values, queries_came, queries_read, keys_came, values_came, keys_read,
	    values_read;
};

template <class form> DEVICE form cut_memory(uint memory)
{
	form at;
	at.queries = memory;
	at.keys = at.queries + form::SHARE * form::ROW_BYTES;
	at.values = at.keys + form::STAGES * form::KEY_BYTES;
	at.keys_came = at.values + form::STAGES * form::VALUE_BYTES;
	at.values_came = at.keys_came + 8 * form::STAGES;
	at.keys_read = at.values_came + 8 * form::STAGES;
	at.values_read = at.keys_read + 8 * form::STAGES;
	at.queries_came = at.values_read + 8 * form::STAGES;
	at.queries_read = at.queries_came + 8;
	return at;
}

/* Which tile is meant of those that follow one another. */
struct stage {
	int at, phase;
};

template <int stages> DEVICE struct stage stage_behind(struct stage stage)
{
	const bool wraps = stage.at == stages - 1;
	return {wraps ? 0 : stage.at + 1, wraps ? stage.phase ^ 1 : stage.phase};
}

/* What a group takes: queries of a head, from `first` on. */
struct hopper_share {
	int head, first;
};

template <class form> DEVICE int tiles_of(const struct attend_hopper_arguments *a)
{
	return (a->queries + form::SHARE - 1) / form::SHARE;
}

template <class form> DEVICE int shares_of(const struct attend_hopper_arguments *a)
{
	return tiles_of<form>(a) * a->heads;
}

template <class form>
DEVICE struct hopper_share hopper_share_of(int number, const struct attend_hopper_arguments *a)
{
	const int tiles = tiles_of<form>(a);
	return {number / tiles, number % tiles * form::SHARE};
}

/* Of one thread. A tile comes when all teams have read the one that was there.
 * @{ */
template <class form, int rows>
DEVICE void load_rows(uint to, const CUtensorMap *wide, const CUtensorMap *narrow, int head, int token,
		      uint barrier)
{
	const int panel_bytes = 2 * SMALTI_HOPPER_PANEL * rows;
	expect_bytes(barrier, rows * form::ROW_BYTES);
	UNROLL
	for (int i = 0; i < form::PANELS; i++)
		load_box(to + i * panel_bytes, wide, i * SMALTI_HOPPER_PANEL, head, token, barrier);
	if (form::NARROW > 0)
		load_box(to + form::PANELS * panel_bytes, narrow, form::PANELS * SMALTI_HOPPER_PANEL,
			 head, token, barrier);
}

template <class form>
DEVICE void load_values(uint to, const CUtensorMap *map, int head, int token, uint barrier)
{
	expect_bytes(barrier, form::VALUE_BYTES);
	UNROLL
	for (int i = 0; i < form::VALUE_PANELS; i++)
		load_box(to + i * PANEL_BYTES, map, i * SMALTI_HOPPER_PANEL, head, token, barrier);
}
/* @} */

/* What a thread keeps of its two queries: the origin of their exponents, in units of ln 2, the sum of what it
 * weighed itself, and every head_dim / 2 of their sums of values; besides, scores of a tile of keys, and
 * their weights as the tensor cores take them. */
template <int head_dim> struct hopper_running {
	float origin[2], sum[2], factor[2];
	float values[head_dim / 2], scores[TILE / 2];
	uint weights[TILE / 4];
};

/* Begins scores [64, TILE] = q · kᵀ, for the team's queries. */
template <enum smalti_dtype dtype, class form>
DEVICE void begin_scores(float *scores, uint q, uint q_narrow, uint k)
{
	UNROLL
	for (int i = 0; i < 4 * form::PANELS; i++) {
		const int panel = i / 4, at = i % 4 * 32;
		multiply_keys<dtype>(
		    scores, matrix_at(q + panel * form::QUERY_PANEL_BYTES + at, 16, 1024, MIXED_128),
		    matrix_at(k + panel * PANEL_BYTES + at, 16, 1024, MIXED_128), i > 0);
	}
	UNROLL
	for (int i = 0; i < form::NARROW / 16; i++) {
		const enum mixture mixture = (enum mixture)form::NARROW_MIXTURE;
		multiply_keys<dtype>(
		    scores, matrix_at(q_narrow + 32 * i, 16, 16 * form::NARROW, mixture),
		    matrix_at(k + form::PANELS * PANEL_BYTES + 32 * i, 16, 16 * form::NARROW, mixture),
		    1);
	}
	end_batch();
}

/* Begins values [64, head_dim] += weights · v. */
template <enum smalti_dtype dtype, int head_dim>
DEVICE void begin_values(float *values, const uint *weights, uint v)
{
	const int columns = VALUES_TOGETHER ? head_dim : SMALTI_HOPPER_PANEL, left = head_dim - columns;
	UNROLL
	for (int i = 0; i < TILE / 16; i++) {
		const uint at = v + 2048 * i;
		multiply_values<dtype, columns>(values, weights + 4 * i,
						matrix_at(at, PANEL_BYTES, 1024, MIXED_128));
		if constexpr (left > 0)
			multiply_values<dtype, left>(
			    values + columns / 2, weights + 4 * i,
			    matrix_at(at + PANEL_BYTES, PANEL_BYTES, 1024, MIXED_128));
	}
	end_batch();
}

/* Has keys that are not there weigh nothing. */
DEVICE void mask_scores(float *scores, int keys)
{
	UNROLL
	for (int i = 0; i < TILE / 2; i++)
		if (i / 4 * 8 + THREAD % 4 * 2 + i % 2 >= keys)
			scores[i] = -INFINITY;
}

/* Makes weights of scores; `factor` brings what was summed before to the new origin. Both rows are taken in
 * turns, each in two halves, so that what follows need not wait for what is before. */
template <int head_dim> DEVICE void soften_scores(struct hopper_running<head_dim> *r, float scale)
{
	float largest[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY}, total[4] = {0, 0, 0, 0}, origin[2];
	UNROLL
	for (int i = 0; i < TILE / 4; i++)
		largest[i % 4] = fmaxf(largest[i % 4], fmaxf(r->scores[2 * i], r->scores[2 * i + 1]));
	UNROLL
	for (int row = 0; row < 2; row++) {
		float most = fmaxf(largest[row], largest[row + 2]);
		most = fmaxf(most, of_lane_beside(most, 1));
		most = fmaxf(most, of_lane_beside(most, 2));
		most = fmaxf(r->origin[row], most * scale);
		origin[row] = most == -INFINITY ? 0.f : most; /* as in soften() */
		r->factor[row] = power_of_two(r->origin[row] - origin[row]);
		r->origin[row] = most;
	}
	UNROLL
	for (int i = 0; i < TILE / 2; i++) {
		r->scores[i] = power_of_two(fmaf(r->scores[i], scale, -origin[i / 2 % 2]));
		total[i / 2 % 4] += r->scores[i];
	}
	UNROLL
	for (int row = 0; row < 2; row++)
		r->sum[row] = r->sum[row] * r->factor[row] + (total[row] + total[row + 2]);
}

/* Brings the sums of values to the origin of the weights, which become operands. */
template <enum smalti_dtype dtype, int head_dim> DEVICE void follow_origin(struct hopper_running<head_dim> *r)
{
	UNROLL
	for (int i = 0; i < head_dim / 2; i++)
		r->values[i] *= r->factor[i / 2 % 2];
	UNROLL
	for (int i = 0; i < TILE / 4; i++)
		r->weights[i] = two_of(dtype, r->scores[2 * i], r->scores[2 * i + 1]);
}

/* What a kernel writes. */
struct hopper_results {
	GLOBAL float *state, *lse;
	GLOBAL ushort *y;
};

/* Lets the team behind this one begin: its turn is numbered as it is, from 1. */
template <class form> DEVICE void end_turn_of(int team)
{
	end_turn(team == form::TEAMS - 1 ? 1 : team + 2);
}

/* A team's queries, and what it has read of the keys and values. */
template <class form> struct hopper_team {
	form at;
	int number;
	uint q, q_narrow;
	struct stage before, now; /* of the tile whose values are to be weighed, and the next one */
	int phase;                /* of the queries */
	float scale;
};

/* Goes on to the next tile. */
template <class form> DEVICE void pass_tile(struct hopper_team<form> *team)
{
	team->before = team->now;
	team->now = stage_behind<form::STAGES>(team->now);
}

/* Scores the next tile, of `keys` keys if it is the last one, while the values of the one before are
 * weighed. */
template <enum smalti_dtype dtype, class form, bool is_last>
DEVICE void take_tile(struct hopper_team<form> *team, struct hopper_running<form::HEAD_DIM> *r, int keys)
{
	const form *at = &team->at;
	const struct stage now = team->now, before = team->before;
	wait_phase(at->keys_came + 8 * now.at, now.phase);
	wait_phase(at->values_came + 8 * before.at, before.phase);
	begin_turn(1 + team->number);
	begin_products();
	begin_scores<dtype, form>(r->scores, team->q, team->q_narrow,
				      at->keys + now.at * form::KEY_BYTES);
	begin_values<dtype, form::HEAD_DIM>(r->values, r->weights, at->values + before.at * form::VALUE_BYTES);
	end_turn_of<form>(team->number);
	wait_batches<1>();
	arrive_if(THREAD % TEAM == 0, at->keys_read + 8 * now.at);
	if (is_last)
		mask_scores(r->scores, keys);
	soften_scores(r, team->scale);
	/* No sum is negative, but the assembler does not know: without something behind all weights that is
	 * not to be moved it puts the wait for the values before the powers (seen in SASS, CUDA 13.0). */
	arrive_if(r->sum[0] + r->sum[1] < 0, at->keys_read + 8 * now.at);
	wait_batches<0>();
	arrive_if(THREAD % TEAM == 0, at->values_read + 8 * before.at);
	follow_origin<dtype>(r);
	pass_tile(team);
}

/* Of the four words of four threads beside each other each gets those of its number, in the order of the
 * threads. */
DEVICE void turn_words(uint words[4])
{
	UNROLL
	for (int bit = 1; bit < 4; bit *= 2) {
		const bool upper = THREAD & bit;
		UNROLL
		for (int i = 0; i < 4; i++) {
			if (i & bit)
				continue;
			const uint other = of_lane_beside(upper ? words[i] : words[i + bit], bit);
			words[i] = upper ? other : words[i];
			words[i + bit] = upper ? words[i + bit] : other;
		}
	}
}

/* As take_tile_state() and its like in attention_tensor.cl have it; `from` and `to` are where the state of
 * the query of `row` begins. @{ */
template <int head_dim>
DEVICE void take_hopper_state(GLOBAL const float *from, int queries, int row,
			      struct hopper_running<head_dim> *r)
{
	const int64_t step = queries;
	from += THREAD % 4 * 2 * step;
	UNROLL
	for (int i = 0; i < head_dim / 4; i++)
		r->values[i / 2 * 4 + 2 * row + i % 2] = from[(2 + i / 2 * 8 + i % 2) * step];
	from -= THREAD % 4 * 2 * step;
	r->origin[row] = from[0];
	r->sum[row] = THREAD % 4 == 0 ? from[step] : 0;
}

template <int head_dim>
DEVICE void leave_hopper_state(const struct hopper_running<head_dim> *r, float sum, int queries, int row,
			       GLOBAL float *to)
{
	const int64_t step = queries;
	if (THREAD % 4 == 0) {
		to[0] = r->origin[row];
		to[step] = sum;
	}
	to += THREAD % 4 * 2 * step;
	UNROLL
	for (int i = 0; i < head_dim / 4; i++)
		to[(2 + i / 2 * 8 + i % 2) * step] = r->values[i / 2 * 4 + 2 * row + i % 2];
}

template <enum smalti_dtype dtype, int head_dim>
DEVICE void finish_hopper(const struct hopper_running<head_dim> *r, float sum, int row, bool there,
			  GLOBAL ushort *y)
{
	const float inverse = sum != 0 ? 1.f / sum : 0;
	uint words[head_dim / 8];
	UNROLL
	for (int i = 0; i < head_dim / 8; i++)
		words[i] = two_of(dtype, r->values[4 * i + 2 * row] * inverse,
					  r->values[4 * i + 2 * row + 1] * inverse);
	UNROLL
	for (int i = 0; i < head_dim / 32; i++)
		turn_words(words + 4 * i);
	if (!there)
		return;
	UNROLL
	for (int i = 0; i < head_dim / 32; i++) {
		const struct chunk chunk = {
		    {words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]}};
		((GLOBAL struct chunk *)y)[4 * i + THREAD % 4] = chunk;
	}
	UNROLL
	for (int i = head_dim / 32 * 4; i < head_dim / 8; i++)
		((GLOBAL uint *)y)[4 * i + THREAD % 4] = words[i];
}
/* @} */

/* Returns where the state of a head's query begins. */
template <int head_dim>
DEVICE int64_t hopper_state_of(int head, int query, const struct attend_hopper_arguments *a)
{
	return (int64_t)head * (2 + head_dim) * a->queries + query;
}

template <enum smalti_dtype dtype, int head_dim>
DEVICE void leave_hopper(const struct hopper_running<head_dim> *r, const struct hopper_results *to, int head,
			 int query, const struct attend_hopper_arguments *a)
{
	UNROLL
	for (int row = 0; row < 2; row++) {
		float sum = r->sum[row] + of_lane_beside(r->sum[row], 1);
		sum += of_lane_beside(sum, 2);
		const int at = query + 8 * row;
		const bool there = at < a->queries;
		if (a->last)
			finish_hopper<dtype>(r, sum, row, there,
					     to->y + ((int64_t)at * a->heads + head) * head_dim);
		else if (there)
			leave_hopper_state(r, sum, a->queries, row,
					   to->state + hopper_state_of<head_dim>(head, at, a));
		if (a->last && there && to->lse && THREAD % 4 == 0)
			to->lse[(int64_t)head * a->queries + at] = r->origin[row] + log2f(sum);
	}
}

/* Scores a share's first tile. */
template <enum smalti_dtype dtype, class form>
DEVICE void begin_share(struct hopper_team<form> *team, struct hopper_running<form::HEAD_DIM> *r, int keys)
{
	const form *at = &team->at;
	const struct stage now = team->now;
	wait_phase(at->queries_came, team->phase);
	wait_phase(at->keys_came + 8 * now.at, now.phase);
	if (team->number > 0)
		begin_turn(1 + team->number);
	begin_products();
	begin_scores<dtype, form>(r->scores, team->q, team->q_narrow,
				      at->keys + now.at * form::KEY_BYTES);
	end_turn_of<form>(team->number);
	wait_batches<0>();
	arrive_if(THREAD % TEAM == 0, at->keys_read + 8 * now.at);
	if (keys < TILE)
		mask_scores(r->scores, keys);
	soften_scores(r, team->scale);
	follow_origin<dtype>(r);
	pass_tile(team);
}

/* Weighs the values of its last tile. */
template <enum smalti_dtype dtype, class form>
DEVICE void end_share(struct hopper_team<form> *team, struct hopper_running<form::HEAD_DIM> *r)
{
	const form *at = &team->at;
	arrive_if(THREAD % TEAM == 0, at->queries_read);
	if (team->number == 0)
		begin_turn(1); /* what the last team has ended last */
	wait_phase(at->values_came + 8 * team->before.at, team->before.phase);
	begin_products();
	begin_values<dtype, form::HEAD_DIM>(r->values, r->weights,
				      at->values + team->before.at * form::VALUE_BYTES);
	wait_batches<0>();
	arrive_if(THREAD % TEAM == 0, at->values_read + 8 * team->before.at);
	team->phase ^= 1;
}

template <enum smalti_dtype dtype, class form>
DEVICE void multiply_share(struct hopper_team<form> *team, const struct hopper_share *share,
			   const struct hopper_results *to, const struct attend_hopper_arguments *a)
{
	const int tiles = (a->keys + TILE - 1) / TILE;
	const int query = share->first + team->number * 64 + THREAD % TEAM / 32 * 16 + THREAD % 32 / 4;
	struct hopper_running<form::HEAD_DIM> r = {
	};
	r.origin[0] = r.origin[1] = -INFINITY;
	UNROLL
	for (int row = 0; row < 2; row++)
		if (!a->first && query + 8 * row < a->queries)
			take_hopper_state(to->state +
					      hopper_state_of<form::HEAD_DIM>(share->head, query + 8 * row, a),
					  a->queries, row, &r);
	begin_share<dtype, form>(team, &r, a->keys);
	for (int tile = 1; tile < tiles - 1; tile++)
		take_tile<dtype, form, false>(team, &r, TILE);
	if (tiles > 1)
		take_tile<dtype, form, true>(team, &r, a->keys - (tiles - 1) * TILE);
	end_share<dtype, form>(team, &r);
	leave_hopper<dtype>(&r, to, share->head, query, a);
}

/* Does a team's part. */
template <enum smalti_dtype dtype, class form>
DEVICE void multiply_hopper(const form *at, const struct hopper_results *to,
			    const struct attend_hopper_arguments *a)
{
	struct hopper_team<form> team = {
	};
	team.at = *at;
	team.number = team_number();
	team.scale = a->scale;
	team.q = at->queries + team.number * 64 * 128;
	team.q_narrow = at->queries + form::PANELS * form::QUERY_PANEL_BYTES + team.number * 64 * 2 * form::NARROW;
	for (int number = (int)GROUP; number < shares_of<form>(a); number += (int)GROUPS) {
		const struct hopper_share share = hopper_share_of<form>(number, a);
		multiply_share<dtype, form>(&team, &share, to, a);
	}
}

struct hopper_maps {
	const CUtensorMap *q_wide, *q_narrow, *k_wide, *k_narrow, *v;
};

/* Does the part of the thread that loads. */
template <class form>
DEVICE void load_hopper(const form *at, const struct hopper_maps *maps,
			const struct attend_hopper_arguments *a)
{
	struct stage stage = {0, 0};
	int phase = 1;
	fetch_map(maps->q_wide);
	fetch_map(maps->k_wide);
	fetch_map(maps->v);
	if (form::NARROW > 0) {
		fetch_map(maps->q_narrow);
		fetch_map(maps->k_narrow);
	}
	for (int number = (int)GROUP; number < shares_of<form>(a); number += (int)GROUPS, phase ^= 1) {
		const struct hopper_share share = hopper_share_of<form>(number, a);
		wait_phase(at->queries_read, phase);
		load_rows<form, form::SHARE>(at->queries, maps->q_wide, maps->q_narrow, share.head, share.first,
				    at->queries_came);
		for (int key = 0; key < a->keys; key += TILE) {
			const uint barrier = 8 * stage.at;
			wait_phase(at->keys_read + barrier, stage.phase ^ 1);
			load_rows<form, TILE>(at->keys + stage.at * form::KEY_BYTES, maps->k_wide,
					    maps->k_narrow, share.head, key, at->keys_came + barrier);
			wait_phase(at->values_read + barrier, stage.phase ^ 1);
			load_values<form>(at->values + stage.at * form::VALUE_BYTES, maps->v,
					      share.head, key, at->values_came + barrier);
			stage = stage_behind<form::STAGES>(stage);
		}
	}
}

template <class form> DEVICE void open_barriers(const form *at)
{
	open_barrier(at->queries_came, 1);
	open_barrier(at->queries_read, form::TEAMS);
	for (int i = 0; i < form::STAGES; i++) {
		open_barrier(at->keys_came + 8 * i, 1);
		open_barrier(at->values_came + 8 * i, 1);
		open_barrier(at->keys_read + 8 * i, form::TEAMS);
		open_barrier(at->values_read + 8 * i, form::TEAMS);
	}
	show_barriers();
}

template <enum smalti_dtype dtype, class form>
DEVICE void attend_hopper(const struct hopper_maps *maps, const struct hopper_results *to,
			  const struct attend_hopper_arguments *a)
{
	const form at = cut_memory<form>(hopper_memory());
	if (THREAD == 0)
		open_barriers<form>(&at);
	BARRIER();
	if (THREAD >= form::TEAMS * TEAM) {
		leave_registers<form::LOADING_REGISTERS>();
		if (THREAD == form::TEAMS * TEAM)
			load_hopper<form>(&at, maps, a);
	} else {
		take_registers<form::MULTIPLYING_REGISTERS>();
		multiply_hopper<dtype, form>(&at, to, a);
	}
}

#define HOPPER(dtype, head_dim, teams)                                                                              \
	(TENSOR_MAP q_wide, TENSOR_MAP q_narrow, TENSOR_MAP k_wide, TENSOR_MAP k_narrow, TENSOR_MAP v,       \
	 GLOBAL float *state, GLOBAL ushort *y, GLOBAL float *lse, struct attend_hopper_arguments a)         \
	{                                                                                                    \
		const struct hopper_maps maps = {&q_wide, &q_narrow, &k_wide, &k_narrow, &v};                \
		const struct hopper_results to = {state, lse, y};                                            \
		attend_hopper<dtype, hopper<head_dim, teams>>(&maps, &to, &a);                                              \
	}
KERNEL_WITHIN(attend_hopper_f16_64_2, SMALTI_HOPPER_THREADS(2), 1) HOPPER(SMALTI_F16, 64, 2)
KERNEL_WITHIN(attend_hopper_f16_64_3, SMALTI_HOPPER_THREADS(3), 1) HOPPER(SMALTI_F16, 64, 3)
KERNEL_WITHIN(attend_hopper_f16_72_2, SMALTI_HOPPER_THREADS(2), 1) HOPPER(SMALTI_F16, 72, 2)
KERNEL_WITHIN(attend_hopper_f16_72_3, SMALTI_HOPPER_THREADS(3), 1) HOPPER(SMALTI_F16, 72, 3)
KERNEL_WITHIN(attend_hopper_f16_80_2, SMALTI_HOPPER_THREADS(2), 1) HOPPER(SMALTI_F16, 80, 2)
KERNEL_WITHIN(attend_hopper_f16_96_2, SMALTI_HOPPER_THREADS(2), 1) HOPPER(SMALTI_F16, 96, 2)
KERNEL_WITHIN(attend_hopper_f16_128_2, SMALTI_HOPPER_THREADS(2), 1) HOPPER(SMALTI_F16, 128, 2)
KERNEL_WITHIN(attend_hopper_bf16_64_2, SMALTI_HOPPER_THREADS(2), 1) HOPPER(SMALTI_BF16, 64, 2)
KERNEL_WITHIN(attend_hopper_bf16_64_3, SMALTI_HOPPER_THREADS(3), 1) HOPPER(SMALTI_BF16, 64, 3)
KERNEL_WITHIN(attend_hopper_bf16_72_2, SMALTI_HOPPER_THREADS(2), 1) HOPPER(SMALTI_BF16, 72, 2)
KERNEL_WITHIN(attend_hopper_bf16_72_3, SMALTI_HOPPER_THREADS(3), 1) HOPPER(SMALTI_BF16, 72, 3)
KERNEL_WITHIN(attend_hopper_bf16_80_2, SMALTI_HOPPER_THREADS(2), 1) HOPPER(SMALTI_BF16, 80, 2)
KERNEL_WITHIN(attend_hopper_bf16_96_2, SMALTI_HOPPER_THREADS(2), 1) HOPPER(SMALTI_BF16, 96, 2)
KERNEL_WITHIN(attend_hopper_bf16_128_2, SMALTI_HOPPER_THREADS(2), 1) HOPPER(SMALTI_BF16, 128, 2)
