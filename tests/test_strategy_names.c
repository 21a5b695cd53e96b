/* SPDX-License-Identifier: Apache-2.0
 *
 * What `--strategy` and `--shares` say, and what is refused.
 */
#include "graphs/strategy/strategy.h"
#include "harness.h"

static void names(void)
{
	static const struct {
		const char *text;
		int places, parts[SMALTI_AXES];
	} good[] = {
	    {"patch", 3, {1, 1, 1, 2}},
	    {"ring4", 3, {1, 1, 1, 4}},
	    {"tensor", 1, {1, 1, 1, 1}},
	    {"cfg", 3, {2, 1, 1, 1}},
	    {"naive-columns", 5, {1, 1, 1, 4}},
	    {"pipeline3", 1, {1, 3, 1, 1}},
	    {"hybrid:cfg2.pipe2.ulysses3.ring2", 1, {2, 2, 3, 2}},
	};
	static const char *const bad[] = {"",
					  "patches",
					  "patch0",
					  "patch-1",
					  "naive-",
					  "patch2x",
					  "patch99999999999999999999",
					  "cfg3",
					  "tensor65",
					  "hybrid:",
					  "hybrid:cfg2..ring2",
					  "hybrid:ring2.patch2",
					  "hybrid:cfg.ring2",
					  "hybrid:pipe1024.ring2",
					  "hybrid:pipe2.naive2",
					  "cfg2.ring2"};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_strategy strategy;
	for (int i = 0; i < COUNT(good); i++) {
		SUCCEEDS(smalti_strategy_read(&strategy, good[i].text, NULL, good[i].places, &error), &error,
			 good[i].text);
		CHECK(memcmp(strategy.parts, good[i].parts, sizeof(strategy.parts)) == 0, good[i].text);
		smalti_strategy_free(&strategy);
	}
	for (int i = 0; i < COUNT(bad); i++)
		FAILS(smalti_strategy_read(&strategy, bad[i], NULL, 3, &error), &error, SMALTI_EINVAL, bad[i],
		      "strategy");
}

static void cuts(void)
{
	static const struct {
		const char *strategy, *shares;
		int64_t first_pass[3];
	} good[] = {
	    {"patch", "1:1:1", {0}},
	    {"ring2", "0:1:1,0:3:1@2", {0, 1}},
	    {"patch", "1:0:0,1:1:0@2,1:1:1@8", {0, 1, 7}}, /* places that join */
	    {"hybrid:cfg2.patch2", "1:1:1,3:1:0@3", {0, 2}},
	    {"hybrid:ulysses2.ring2", "0:1:1,0:3:1@8", {0, 7}}, /* as many heads as before */
	    {"hybrid:tensor2.patch2", "0:1:1,0:3:1@8", {0, 7}},
	};
	static const struct {
		const char *strategy, *shares, *cause;
	} bad[] = {
	    {"ring", "1:1:1,3:1@2", "expected 3 (the CPUs'"},
	    {"ring", "1:1:1,0:0:0@2", "expected 3 (the CPUs'"},
	    {"ring", "1:1:1@2", "expected 3 (the CPUs'"},
	    {"ring", ",1:1:1@2", "expected 3 (the CPUs'"},
	    {"ring", "1:1:1,1:2:1", "from a step behind 1 on and 8 at most"},
	    {"ring", "1:1:1,", "from a step behind 1 on"},
	    {"ring", "1:1:1,1:2:1@", "from a step behind 1 on"},
	    {"ring", "1:1:1,1:2:1@1", "from a step behind 1 on"},
	    {"ring", "1:1:1,1:2:1@9", "and 8 at most"},
	    {"ring", "1:1:1,1:2:1@2x", "from a step behind 1 on"},
	    {"ring", "1:1:1,1:2:1@5,2:1:1@5", "from a step behind 5 on"},
	    {"ring", "1:1:1,1:2:1@5,2:1:1@3", "from a step behind 5 on"},
	    {"displaced", "1:1:1,1:2:1@2", "an exact strategy"},
	    {"pipeline", "1:1:1,1:2:1@2", "an exact strategy"},
	    {"masked", "1:1:1,1:2:1@2", "an exact strategy"},
	    {"naive-alternating", "1:1:1,1:2:1@2", "an exact strategy"},
	    {"ulysses", "1:1:1,1:2:1@2", "weights do not move"},
	    {"tensor2", "0:1:1,1:1:0@2", "weights do not move"},
	    {"hybrid:tensor2.ring2", "1:1:1,1:2:1@2", "weights do not move"},
	    {"cfg2", "1:1:1,1:2:1@2", "two ranks of tokens"},
	};
	enum { PLAN_STEPS = 8 };
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_strategy strategy;
	for (int i = 0; i < COUNT(good); i++) {
		SUCCEEDS(smalti_strategy_read_cuts(&strategy, good[i].strategy, good[i].shares, 3, PLAN_STEPS,
						   &error),
			 &error, good[i].shares);
		const int64_t *first = good[i].first_pass;
		for (const struct smalti_strategy *cut = &strategy; cut; cut = cut->next)
			CHECK(cut->first_pass == *first++, good[i].shares);
		for (int64_t pass = 0; pass < PLAN_STEPS; pass++)
			CHECK(smalti_strategy_of_pass(&strategy, pass).first_pass ==
				  good[i].first_pass[smalti_strategy_kind(&strategy, pass)],
			      good[i].shares);
		smalti_strategy_free(&strategy);
	}
	for (int i = 0; i < COUNT(bad); i++) {
		struct smalti_error cause = SMALTI_NO_ERROR;
		FAILS(smalti_strategy_read_cuts(&strategy, bad[i].strategy, bad[i].shares, 3, PLAN_STEPS,
						&cause),
		      &cause, SMALTI_EINVAL, bad[i].shares, bad[i].cause);
	}
}

static const struct test tests[] = {
    {"names", names},
    {"cuts", cuts},
};

TEST_MAIN("strategy names", tests)
