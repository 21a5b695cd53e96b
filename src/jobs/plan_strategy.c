/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/plan_strategy.h"
#include "graphs/strategy/choose.h"
#include "ranks/ranks.h"
#include "rt/rank_facts.h"

static char *write_shares(const double *shares, int places, struct smalti_error *error)
{
	char *text = smalti_format(error, "%g", shares[0]);
	for (int place = 1; text && place < places; place++) {
		char *longer = smalti_format(error, "%s:%g", text, shares[place]);
		free(text);
		text = longer;
	}
	return text;
}

/* Estimates the tokens of a prompt, which are not known yet: cross-attention costs little. */
struct smalti_denoising smalti_plan_denoising(const struct smalti_plan *plan)
{
	enum { EMPTY = 1, SOME = 40 };
	const struct smalti_denoiser *d = plan->model->denoiser;
	const int64_t columns = plan->latent_width / d->patch_size;
	struct smalti_denoising denoising = {.denoiser = d,
					     .tokens = plan->latent_height / d->patch_size * columns,
					     .columns = columns,
					     .band_tokens = plan->request.tile_tokens};
	if (plan->guided)
		denoising.prompt_tokens[denoising.branches++] = *plan->negative_prompt ? SOME : EMPTY;
	denoising.prompt_tokens[denoising.branches++] = SOME;
	return denoising;
}

/* Chooses the numbers and the name that the request's `auto` stands for. */
static int choose(const struct smalti_plan *plan, double *shares, char name[SMALTI_STRATEGY_NAME],
		  struct smalti_error *error)
{
	const struct smalti_request *r = &plan->request;
	const struct smalti_denoising denoising = smalti_plan_denoising(plan);
	const bool fixed = r->shares && !smalti_is_auto(r->shares);
	struct smalti_place_facts facts;
	if (smalti_place_facts_of(plan->model->session, &facts, error) < 0)
		return -1;
	if (!fixed)
		smalti_shares_by_rate(&facts, shares);
	const int status = smalti_is_auto(r->strategy)
			       ? smalti_strategy_choose(&denoising, &facts, fixed, shares, name, error)
			       : 0;
	smalti_place_facts_free(&facts);
	return status;
}

/* Copies the texts into the plan, with `auto` replaced. */
static int resolve_auto(struct smalti_plan *plan, double *shares, int places, struct smalti_error *error)
{
	struct smalti_request *r = &plan->request;
	char name[SMALTI_STRATEGY_NAME];
	const bool chooses = smalti_is_auto(r->strategy) || smalti_is_auto(r->shares);
	const bool fixed = r->shares && !smalti_is_auto(r->shares);
	if (smalti_is_auto(r->strategy) && smalti_shares_cut_again(r->shares))
		return smalti_fail(error, SMALTI_EINVAL,
				   "strategy: expected a name (patch, ring) with shares that cut again "
				   "between steps, found '%s'",
				   r->strategy);
	if (chooses && fixed && smalti_shares_read(r->shares, places, shares, error) < 0)
		return -1;
	if (chooses && choose(plan, shares, name, error) < 0)
		return -1;
	if (r->strategy && !(plan->strategy_text = smalti_format(
				 error, "%s", smalti_is_auto(r->strategy) ? name : r->strategy)))
		return -1;
	if (r->shares || chooses)
		plan->share_text =
		    fixed ? smalti_format(error, "%s", r->shares) : write_shares(shares, places, error);
	if ((r->shares || chooses) && !plan->share_text)
		return -1;
	r->strategy = plan->strategy_text;
	r->shares = plan->share_text;
	return 0;
}

static int read_texts(struct smalti_plan *plan, struct smalti_error *error)
{
	const struct smalti_request *r = &plan->request;
	const int places = smalti_session_place_count(plan->model->session);
	SCOPED(free) double *shares = smalti_calloc(places, sizeof(*shares), error);
	const bool homogeneous = smalti_ranks_count() > 1; /* rank 0 is a place like the others */
	for (int place = 0; shares && homogeneous && place < places; place++)
		shares[place] = 1;
	if (!shares || resolve_auto(plan, shares, places, error) < 0)
		return -1;
	const char *name = r->strategy ? r->strategy : "patch";
	if (r->shares)
		return smalti_strategy_read_cuts(&plan->strategy, name, r->shares, places,
						 plan->sampler->steps, error);
	return smalti_strategy_read(&plan->strategy, name, homogeneous ? shares : NULL, places, error);
}

int smalti_plan_strategy_prepare(struct smalti_session *session, const struct smalti_request *request,
				 struct smalti_error *error)
{
	return smalti_rank_facts_gather(
	    session, smalti_is_auto(request->strategy) || smalti_is_auto(request->shares), error);
}

int smalti_plan_strategy_read(struct smalti_plan *plan, struct smalti_error *error)
{
	const struct smalti_request *r = &plan->request;
	plan->strategy = smalti_strategy_none;
	if (!r->strategy && !r->shares)
		return 0;
	if (read_texts(plan, error) < 0)
		return -1;
	if (plan->strategy.replicas)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "strategy: data cuts the batches of smalti train: expected another, found '%s'",
		    r->strategy);
	if (r->patches && plan->strategy.parts[SMALTI_AXIS_STAGE] == 1)
		return smalti_fail(error, SMALTI_EINVAL, "patches: expected with a pipeline only, found %lld",
				   (long long)r->patches);
	if (r->warmup && !smalti_strategy_keeps(&plan->strategy))
		return smalti_fail(error, SMALTI_EINVAL,
				   "warmup: expected with pipeline or displaced only, found %lld",
				   (long long)r->warmup);
	plan->strategy.patches = r->patches ? r->patches : plan->strategy.patches;
	plan->strategy.warmup = r->warmup ? r->warmup : 1;
	return 0;
}

const char *smalti_plan_strategy(const struct smalti_plan *plan)
{
	return plan->request.strategy;
}

const char *smalti_plan_shares(const struct smalti_plan *plan)
{
	return plan->request.shares;
}
