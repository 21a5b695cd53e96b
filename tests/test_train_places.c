/* SPDX-License-Identifier: Apache-2.0
 *
 * The transformer's forward and backward where a strategy places them: near those of one memory, with the
 * same bits whoever computes them, and with the bytes that are counted. */
#include "golden.h"
#include "harness.h"
#include "moved.h"
#include "rt/counting.h"
#include "rt/session.h"
#include "stage.h"
#include "train_graph.h"

#include <math.h>
#include <stdio.h>

static struct smalti_session *session;

/* The same plan, by several workers and policies: on CPUs, where there are more of them than one. */
static void ranks_change_no_bit(void)
{
	static const char *const names[] = {"patch2", "hybrid:data2.ring2", "tensor5",
					    "hybrid:data2.tensor2"};
	const struct train_graph_case c = train_graph_case("alpha");
	for (size_t n = 0; n < COUNT_OF(names); n++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_strategy strategy;
		SUCCEEDS(smalti_strategy_read(&strategy, names[n], NULL, 1, &error), &error, names[n]);
		const struct train_graph_plan plan = {.band = 4, .scale = 1, .strategy = &strategy};
		const struct train_graph_plan one = {.band = 4, .scale = 1};
		struct train_graph_outcome whole = train_graph_step(session, &c, &one),
					   here = train_graph_step(session, &c, &plan);
		train_graph_near(&c, &whole, &here, names[n]);
		struct train_graph_plan recomputing = plan;
		recomputing.recomputed = c.config.layers;
		recomputing.bounded = true;
		struct train_graph_outcome again = train_graph_step(session, &c, &recomputing);
		CHECK(train_graph_same_bits(&here, &again), "recomputed");
		train_graph_drop(&again);
		smalti_session_close(session, NULL);
		for (size_t i = 0; i < TRAIN_GRAPH_SCHEDULERS; i++) {
			struct smalti_session *other =
			    stage_session(train_graph_schedulers[i].policy, train_graph_schedulers[i].cpus);
			struct train_graph_outcome there = train_graph_step(other, &c, &plan);
			CHECK(train_graph_same_bits(&here, &there), train_graph_schedulers[i].policy);
			train_graph_drop(&there);
			smalti_session_close(other, NULL);
		}
		session = stage_session("lws", 2);
		train_graph_drop(&whole);
		train_graph_drop(&here);
		smalti_strategy_free(&strategy);
	}
}

/* On devices */

static struct smalti_session *devices(int count)
{
	smalti_session_close(session, NULL);
	struct smalti_session *on = moved_session(count);
	if (!on)
		session = stage_session("lws", 2);
	return on;
}

static void leave_devices(struct smalti_session *on)
{
	smalti_session_close(on, NULL);
	session = stage_session("lws", 2);
}

static void devices_agree_with_the_reference(void)
{
	static const char *const names[] = {"sigma", "alpha"};
	struct smalti_session *on = devices(2);
	for (size_t i = 0; on && i < COUNT_OF(names); i++) {
		const struct train_graph_case c = train_graph_case(names[i]);
		const struct train_graph_plan plan = {.band = 7, .scale = 1};
		struct train_graph_outcome o = train_graph_step(on, &c, &plan);
		golden_near(o.out, train_graph_floats(c.name, "out"), 2 * o.latent, 2e-5, "output");
		golden_near(o.gx, train_graph_floats(c.name, "dx"), o.latent, 4e-5, "gradient of the input");
		train_graph_losses(&c, &o);
		train_graph_gradients(&c, &o);
		train_graph_drop(&o);
	}
	if (on)
		leave_devices(on);
}

enum { PLACES = 4, FEW_BYTES = 512 };

/* Bytes that came to each place since this was called last. */
static void place_bytes(struct smalti_session *on, double bytes[PLACES])
{
	if (!on->counting)
		moved_bytes(on, PLACES, bytes);
	for (int place = 0; on->counting && place < PLACES; place++) {
		double *transfers = on->counting->at[place].transfers;
		bytes[place] = 0;
		for (int kind = 0; kind < SMALTI_TRANSFER_KINDS; kind++)
			bytes[place] += transfers[kind];
		memset(transfers, 0, SMALTI_TRANSFER_KINDS * sizeof(*transfers));
	}
}

/* Bytes to each place, of the case with one sample fewer subtracted from that of all: those of the last one.
 */
static void sample_bytes(struct smalti_session *on, const struct train_graph_case *c,
			 const struct train_graph_plan *plan, double bytes[PLACES])
{
	struct train_graph_case less = *c;
	double all[PLACES], fewer[PLACES];
	less.samples--;
	place_bytes(on, all);
	struct train_graph_outcome o = train_graph_step(on, &less, plan);
	train_graph_drop(&o);
	place_bytes(on, fewer);
	o = train_graph_step(on, c, plan);
	train_graph_drop(&o);
	place_bytes(on, all);
	for (int place = 0; place < PLACES; place++)
		bytes[place] = all[place] - fewer[place];
}

static void compare_bytes(struct smalti_session *on, const struct train_graph_case *c,
			  struct train_graph_plan plan, const char *name)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *counts = smalti_session_open_counting(PLACES, true, &error);
	double found[PLACES], expected[PLACES];
	plan.forget = true;
	sample_bytes(on, c, &plan, found);
	sample_bytes(counts, c, &plan, expected);
	for (int place = 1; place < PLACES; place++) {
		char what[160];
		snprintf(what, sizeof(what), "%s: %.0f bytes to device %d for a sample, %.0f counted", name,
			 found[place], place, expected[place]);
		printf("\n    %s", what);
		CHECK(fabs(found[place] - expected[place]) <= 0.02 * expected[place] + FEW_BYTES, what);
	}
	smalti_session_close(counts, NULL);
}

static void devices_share_a_step(void)
{
	static const struct {
		const char *strategy;
		int64_t recomputed;
	} cases[] = {{"patch2", 0},
		     {"patch3", 0},
		     {"ring3", 1},
		     {"data2", 0},
		     {"hybrid:data2.patch2", 0},
		     {"tensor2", 0},
		     {"tensor3", 1},
		     {"hybrid:data2.tensor2", 0}};
	const struct train_graph_case c = train_graph_case("alpha");
	struct smalti_session *on = devices(3);
	if (!on)
		return;
	const struct train_graph_plan one = {.band = 4, .scale = 1};
	struct train_graph_outcome whole = train_graph_step(on, &c, &one);
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_strategy strategy;
		SUCCEEDS(smalti_strategy_read(&strategy, cases[i].strategy, NULL, PLACES, &error), &error,
			 cases[i].strategy);
		const struct train_graph_plan plan = {.band = 4,
						      .scale = 1,
						      .strategy = &strategy,
						      .recomputed = cases[i].recomputed,
						      .bounded = cases[i].recomputed > 0};
		struct train_graph_outcome o = train_graph_step(on, &c, &plan);
		train_graph_near(&c, &whole, &o, cases[i].strategy);
		train_graph_drop(&o);
		if (train_graph_replicas(&plan) ==
		    1) /* else the weights come to a replica with its first sample */
			compare_bytes(on, &c, plan, cases[i].strategy);
		smalti_strategy_free(&strategy);
	}
	train_graph_drop(&whole);
	leave_devices(on);
}

static const struct test tests[] = {
    {"ranks change no bit", ranks_change_no_bit},
    {"devices agree with the reference", devices_agree_with_the_reference},
    {"devices share a step", devices_share_a_step},
};

TEST_PROGRAM()
{
	session = stage_session("lws", 2);
	const int status = test_main("train places", tests, COUNT(tests));
	smalti_session_close(session, NULL);
	train_graph_close();
	return status;
}
