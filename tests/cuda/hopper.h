/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU's part of src/kernels/device/hopper.h, for threads that are fibers. Copies and products, which a
 * GPU does while threads go on, are done as early as possible in some groups, and as late as possible in
 * others: code that does not wait for them finds other values in one of these groups. */
#pragma once

#include "cuda/fibers.h"
#include "cuda/tensor_map.h"

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <vector>

typedef standin_tensor_map CUtensorMap;
#define TENSOR_MAP const CUtensorMap

enum { HOPPER_THREADS = 4 * TEAM, TEAM_ROWS = 64, HOPPER_MEMORY_BEGIN = 1024 };

struct hopper_box {
	uint to;
	const CUtensorMap *map;
	int at[3];
};

struct hopper_barrier {
	int arrivals = 0, pending = 0, phase = 0;
	long bytes = 0;                /* expected, less those that came */
	std::vector<hopper_box> boxes; /* in transit */
};

/* How many threads came to a meeting, and how often all met. */
struct hopper_meeting {
	int came = 0;
	long times = 0;
};

/* A product that each thread of a team has issued. */
struct hopper_product {
	void (*multiply)(const hopper_product *);
	uint64_t a, b;
	int adds, columns;
	enum smalti_dtype dtype;
	float *d[TEAM];
	const uint *left[TEAM];
};

struct hopper_queue {
	std::deque<hopper_product> products; /* not done yet */
	size_t done = 0;
	std::vector<size_t> ends; /* of batches */
	int ended[TEAM] = {};     /* batches, by each thread */
	size_t given[TEAM] = {};
	bool begun[TEAM] = {};
};

static struct {
	alignas(1024) char memory[STANDIN_MOST_SHARED];
	unsigned number;
	bool late_products, late_boxes;
	std::map<uint, hopper_barrier> barriers;
	hopper_meeting turns[16], teams[HOPPER_THREADS / TEAM], warps[HOPPER_THREADS / 32];
	hopper_queue queues[HOPPER_THREADS / TEAM];
	uint lanes[HOPPER_THREADS];
} hopper_group;

[[noreturn]] static inline void refuse_hopper(const char *what)
{
	fprintf(stderr, "stand-in: thread %d: %s\n", THREAD, what);
	abort();
}

static inline char *hopper_bytes(uint at, size_t bytes)
{
	if (at < HOPPER_MEMORY_BEGIN || at + bytes > standin_shared_bytes)
		refuse_hopper("an address that is not of the group's local memory");
	return hopper_group.memory + at;
}

/* Returns the group's memory; the first thread resets all. */
static inline uint hopper_memory()
{
	if (THREAD > 0)
		return HOPPER_MEMORY_BEGIN;
	memset(hopper_group.memory, 0xff, sizeof(hopper_group.memory));
	hopper_group.late_products = hopper_group.number % 2;
	hopper_group.late_boxes = hopper_group.number++ / 2 % 2;
	hopper_group.barriers.clear();
	for (hopper_meeting &meeting : hopper_group.turns)
		meeting = {};
	for (hopper_queue &queue : hopper_group.queues)
		queue = {};
	return HOPPER_MEMORY_BEGIN;
}

template <int count> static inline void take_registers()
{
}

template <int count> static inline void leave_registers()
{
}

/* Returns where a piece of 16 bytes is stored in mixed order. */
static inline uint mixed(uint at, int mixture)
{
	static const uint bits[] = {0, 7, 3, 1};
	return at ^ (at >> 7 & bits[mixture]) << 4;
}

static inline void copy_box(const hopper_box *box)
{
	const CUtensorMap *map = box->map;
	for (int row = 0; row < map->box[2]; row++)
		for (int column = 0; column < map->box[0]; column += 8) {
			const int64_t from = box->at[0] + column, head = box->at[1], token = box->at[2] + row;
			char *to = hopper_bytes(
			    mixed(box->to + (uint)(row * map->box[0] + column) * 2, map->mixture), 16);
			const int64_t left =
			    head < map->extents[1] && token < map->extents[2] ? map->extents[0] - from : 0;
			memset(to, 0, 16);
			if (left > 0)
				memcpy(to,
				       map->base + 2 * from + head * map->strides[0] +
					   token * map->strides[1],
				       2 * (size_t)(left < 8 ? left : 8));
		}
}

static inline void end_phase(hopper_barrier *barrier)
{
	if (barrier->pending > 0 || barrier->bytes != 0)
		return;
	barrier->phase ^= 1;
	barrier->pending = barrier->arrivals;
}

static inline hopper_barrier *barrier_at(uint at)
{
	hopper_bytes(at, 8);
	const auto found = hopper_group.barriers.find(at);
	if (found == hopper_group.barriers.end())
		refuse_hopper("a barrier that nobody opened");
	return &found->second;
}

static inline void open_barrier(uint barrier, int arrivals)
{
	hopper_bytes(barrier, 8);
	hopper_group.barriers[barrier].arrivals = hopper_group.barriers[barrier].pending = arrivals;
}

static inline void show_barriers()
{
}

static inline void expect_bytes(uint barrier, int bytes)
{
	barrier_at(barrier)->bytes += bytes;
	barrier_at(barrier)->pending--;
	end_phase(barrier_at(barrier));
}

static inline void arrive_if(int arrives, uint barrier)
{
	if (!arrives)
		return;
	if (--barrier_at(barrier)->pending < 0)
		refuse_hopper("it arrives at a barrier where nobody is expected");
	end_phase(barrier_at(barrier));
}

static inline void bring_boxes(hopper_barrier *barrier)
{
	for (const hopper_box &box : barrier->boxes) {
		copy_box(&box);
		barrier->bytes -= 2 * box.map->box[0] * box.map->box[2];
	}
	const bool brought = !barrier->boxes.empty();
	barrier->boxes.clear();
	if (brought)
		end_phase(barrier);
}

struct hopper_phase {
	hopper_barrier *barrier;
	int phase;
};

static inline bool has_ended(void *argument)
{
	const hopper_phase *wanted = static_cast<hopper_phase *>(argument);
	bring_boxes(wanted->barrier);
	return wanted->barrier->phase != wanted->phase;
}

static inline void wait_phase(uint barrier, int phase)
{
	hopper_phase wanted = {barrier_at(barrier), phase};
	standin_wait_until(has_ended, &wanted);
}

static inline void fetch_map(const CUtensorMap *)
{
}

static inline void load_box(uint to, const CUtensorMap *map, int column, int head, int token, uint barrier)
{
	barrier_at(barrier)->boxes.push_back({to, map, {column, head, token}});
	if (!hopper_group.late_boxes)
		bring_boxes(barrier_at(barrier));
}

/* Comes to a meeting of `count` threads; tells whether it is the last. */
static inline bool come(hopper_meeting *meeting, int count)
{
	if (++meeting->came < count)
		return false;
	meeting->came = 0;
	meeting->times++;
	return true;
}

struct hopper_attendance {
	const hopper_meeting *meeting;
	long before;
};

static inline bool have_met(void *argument)
{
	const hopper_attendance *attendance = static_cast<hopper_attendance *>(argument);
	return attendance->meeting->times > attendance->before;
}

static inline void meet(hopper_meeting *meeting, int count)
{
	hopper_attendance attendance = {meeting, meeting->times};
	if (!come(meeting, count))
		standin_wait_until(have_met, &attendance);
}

static inline void begin_turn(int turn)
{
	meet(&hopper_group.turns[turn], 2 * TEAM);
}

static inline void end_turn(int turn)
{
	come(&hopper_group.turns[turn], 2 * TEAM);
}

static inline hopper_queue *queue_of_team()
{
	return &hopper_group.queues[THREAD / TEAM];
}

static inline void run_products(hopper_queue *queue, size_t end)
{
	for (; queue->done < end; queue->done++) {
		queue->products.front().multiply(&queue->products.front());
		queue->products.pop_front();
	}
}

static inline void begin_products()
{
	queue_of_team()->begun[THREAD % TEAM] = true;
}

static inline void end_batch()
{
	hopper_queue *queue = queue_of_team();
	const int thread = THREAD % TEAM;
	const size_t number = (size_t)queue->ended[thread]++;
	if (number == queue->ends.size())
		queue->ends.push_back(queue->given[thread]);
	else if (queue->ends[number] != queue->given[thread])
		refuse_hopper("threads of a team differ in what they multiply");
	bool all = !hopper_group.late_products;
	for (int i = 0; i < TEAM; i++)
		all = all && (size_t)queue->ended[i] > number;
	if (all)
		run_products(queue, queue->ends[number]);
}

template <int batches> static inline void wait_batches()
{
	hopper_queue *queue = queue_of_team();
	const int number = THREAD / TEAM, ended = queue->ended[THREAD % TEAM];
	meet(&hopper_group.teams[number], TEAM);
	if (hopper_group.late_products)
		standin_let_others();
	if (ended > batches)
		run_products(queue, queue->ends[(size_t)(ended - batches) - 1]);
	if (batches == 0)
		queue->begun[THREAD % TEAM] = false;
	meet(&hopper_group.teams[number], TEAM);
}

static inline void give_product(const hopper_product &product, float *d, const uint *left)
{
	hopper_queue *queue = queue_of_team();
	const int thread = THREAD % TEAM;
	const size_t number = queue->given[thread]++ - queue->done;
	if (!queue->begun[thread])
		refuse_hopper("a product that nothing begins");
	if (number == queue->products.size())
		queue->products.push_back(product);
	hopper_product *mine = &queue->products[number];
	if (mine->multiply != product.multiply || mine->a != product.a || mine->b != product.b)
		refuse_hopper("threads of a team differ in what they multiply");
	mine->d[thread] = d;
	mine->left[thread] = left;
}

static inline float hopper_element(uint at, int mixture, enum smalti_dtype dtype)
{
	uint16_t one;
	memcpy(&one, hopper_bytes(mixed(at, mixture), 2), 2);
	return dtype == SMALTI_BF16 ? FLOAT_OF_BITS((uint)one << 16) : smalti_f16_to_f32(one);
}

/* The fields of what matrix_at() has put together. */
struct hopper_matrix {
	uint at;
	int leap, step, mixture;
};

static inline hopper_matrix hopper_matrix_of(uint64_t described)
{
	return {(uint)(described & 0x3fff) << 4, (int)(described >> 16 & 0x3fff) << 4,
		(int)(described >> 32 & 0x3fff) << 4, (int)(described >> 62)};
}

/* Reads to [rows, 16]. */
static inline void take_rows(uint64_t described, int rows, enum smalti_dtype dtype, float *to)
{
	static const int bytes[] = {16, 128, 64, 32};
	const hopper_matrix m = hopper_matrix_of(described);
	for (int row = 0; row < rows; row++)
		for (int k = 0; k < 16; k++)
			to[row * 16 + k] = hopper_element(
			    m.at + (uint)(row / 8 * m.step + row % 8 * bytes[m.mixture] + k * 2), m.mixture,
			    dtype);
}

/* Adds a [64, 16] · b [16, columns] to the threads' sums. */
static inline void add_product(const hopper_product *p, const float *a, const float *b)
{
	for (int row = 0; row < TEAM_ROWS; row++) {
		float sums[128] = {};
		for (int k = 0; k < 16; k++)
			for (int column = 0; column < p->columns; column++)
				sums[column] += a[row * 16 + k] * b[k * p->columns + column];
		for (int column = 0; column < p->columns; column++) {
			const int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
			float *d = &p->d[thread][column / 8 * 4 + row % 16 / 8 * 2 + column % 2];
			*d = p->adds ? *d + sums[column] : sums[column];
		}
	}
}

static inline void multiply_rows(const hopper_product *p)
{
	float a[TEAM_ROWS * 16], rows[128 * 16], b[16 * 128];
	take_rows(p->a, TEAM_ROWS, p->dtype, a);
	take_rows(p->b, p->columns, p->dtype, rows);
	for (int column = 0; column < p->columns; column++)
		for (int k = 0; k < 16; k++)
			b[k * p->columns + column] = rows[column * 16 + k];
	add_product(p, a, b);
}

static inline void multiply_turned(const hopper_product *p)
{
	const hopper_matrix m = hopper_matrix_of(p->b);
	float a[TEAM_ROWS * 16], b[16 * 128];
	for (int row = 0; row < TEAM_ROWS; row++)
		for (int k = 0; k < 16; k++) {
			const uint two =
			    p->left[row / 16 * 32 + row % 8 * 4 + k % 8 / 2][row % 16 / 8 + k / 8 * 2];
			const uint16_t one = (uint16_t)(two >> 16 * (k % 2));
			a[row * 16 + k] =
			    p->dtype == SMALTI_BF16 ? FLOAT_OF_BITS((uint)one << 16) : smalti_f16_to_f32(one);
		}
	for (int k = 0; k < 16; k++)
		for (int column = 0; column < p->columns; column++)
			b[k * p->columns + column] =
			    hopper_element(m.at + (uint)(column / 64 * m.leap + k / 8 * m.step + k % 8 * 128 +
							 column % 64 * 2),
					   m.mixture, p->dtype);
	add_product(p, a, b);
}

template <enum smalti_dtype dtype>
static inline void multiply_keys(float *d, uint64_t a, uint64_t b, int adds)
{
	give_product({multiply_rows, a, b, adds, 128, dtype, {}, {}}, d, nullptr);
}

template <enum smalti_dtype dtype, int columns>
static inline void multiply_values(float *d, const uint *a, uint64_t b)
{
	give_product({multiply_turned, 0, b, 1, columns, dtype, {}, {}}, d, a);
}

template <typename T> static inline T of_lane_beside(T value, int mask)
{
	static_assert(sizeof(T) == sizeof(uint), "a word");
	hopper_meeting *warp = &hopper_group.warps[THREAD / 32];
	memcpy(&hopper_group.lanes[THREAD], &value, sizeof(value));
	meet(warp, 32);
	memcpy(&value, &hopper_group.lanes[THREAD ^ mask], sizeof(value));
	meet(warp, 32);
	return value;
}

static inline int team_number()
{
	return (int)THREAD / TEAM;
}

static inline float power_of_two(float x)
{
	return exp2f(x);
}
