/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/plan_step_cache.h"
#include "jobs/precision.h"
#include "ranks/ranks.h"

struct smalti_step_cache_key smalti_plan_step_key(const struct smalti_plan *plan)
{
	const struct smalti_request *r = &plan->request;
	const char *lora = smalti_plan_lora(plan);
	return (struct smalti_step_cache_key){
	    .model = lora ? lora : plan->model->digest,
	    .precision = smalti_precisions[plan->model->precision],
	    .scheduler = r->scheduler ? r->scheduler : smalti_sampler_name_of(&plan->model->scheduler),
	    .guidance = plan->guided ? r->guidance : 1,
	    .sampler = plan->sampler};
}

/* Refuses a step cache where a call does not depend on this step alone, or ranks would have to agree. */
static int check(const struct smalti_plan *plan, struct smalti_error *error)
{
	if (smalti_ranks_count() > 1)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "step cache: it is not for several ranks; run one process, with devices, "
				   "or leave it out");
	if (!smalti_strategy_is_exact(&plan->strategy) || plan->strategy.patches > 1 || plan->strategy.next)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "step cache: expected no strategy, or an exact one without patches or "
				   "shares that change, found %s",
				   plan->request.strategy ? plan->request.strategy : plan->request.shares);
	return 0;
}

int smalti_plan_step_cache_read(struct smalti_plan *plan, struct smalti_error *error)
{
	struct smalti_step_cache_rule *rule = &plan->step_cache;
	if (smalti_step_cache_parse(plan->request.step_cache, rule, error) < 0)
		return -1;
	if (rule->kind == SMALTI_STEP_CACHE_NONE)
		return 0;
	rule->checks = plan->request.step_cache_checks;
	if (check(plan, error) < 0)
		return -1;
	if (rule->kind != SMALTI_STEP_CACHE_BOUND)
		return 0;
	const struct smalti_step_cache_key key = smalti_plan_step_key(plan);
	plan->step_table = smalti_step_cache_table_read(plan->model->step_cache_path, &key, error);
	if (!plan->step_table)
		return -1;
	rule->ratios = plan->step_table->ratios;
	plan->step_cache_named =
	    smalti_format(error, "%s of %s", plan->request.step_cache, plan->step_table->digest);
	return plan->step_cache_named ? 0 : -1;
}

const char *smalti_plan_step_cache(const struct smalti_plan *plan)
{
	return plan->step_cache_named ? plan->step_cache_named : plan->request.step_cache;
}
