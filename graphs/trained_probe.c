/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "graphs/deliver.h"
#include "graphs/trained_pass.h"

/* A probe of one forward. */
struct prober {
	struct smalti_task_group *task_group;
	struct smalti_trained_probes *probes;
};

/* Probes `count` floats; the name ends before `suffix`, if it has that. */
static void probe(const struct prober *p, struct smalti_tile *tile, int64_t count, const char *name,
		  const char *suffix)
{
	struct smalti_trained_probe *probe = &p->probes->list[p->probes->count++];
	snprintf(probe->name, sizeof(probe->name), "%s", name);
	char *end = suffix ? strstr(probe->name, suffix) : NULL;
	if (end)
		*end = '\0';
	struct smalti_tile *sum = smalti_tile_new(p->task_group, 1, sizeof(probe->square_sum));
	smalti_insert(square_sum, p->task_group, (.x = tile, .sum = sum), .count = count, .factor = 1);
	smalti_deliver_to_all(p->task_group, sum, sizeof(probe->square_sum) / sizeof(float),
			      &probe->square_sum);
	smalti_tile_release(sum);
}

/* Probes the results of all linear layers that are f32, under their weights' names. */
static void probe_layers(const struct prober *p, struct smalti_tape *tape)
{
	for (int64_t i = 0; i < tape->count; i++) {
		const struct smalti_record *r = &tape->list[i];
		if (r->linear && r->y.dtype == SMALTI_F32)
			probe(p, smalti_tape_tile(tape, r->y), r->y.rows * r->y.columns,
			      smalti_weight_view(r->linear->weight, 0)->name, ".weight");
	}
}

static void probe_all(const struct prober *p, struct smalti_trained_pass *pass, struct smalti_tile *out)
{
	const struct smalti_denoiser *denoiser = pass->trained->denoiser;
	const struct smalti_trained_sample *sample = &pass->sample;
	const int64_t pixels = sample->height * sample->width;
	probe(p, sample->x, denoiser->in_channels * pixels, "the item's latents", NULL);
	probe(p, sample->text, sample->text_tokens * denoiser->text_width, "the item's caption", NULL);
	probe_layers(p, &pass->tape);
	probe(p, out, denoiser->out_channels * pixels, "proj_out", NULL);
}

int smalti_trained_probe_all(struct smalti_trained *trained, struct smalti_task_group *task_group,
			     const struct smalti_trained_sample *sample, struct smalti_trained_probes *probes,
			     struct smalti_error *error)
{
	enum { AROUND = 3 }; /* those that are no layers */
	struct smalti_trained_sample kept = *sample;
	struct smalti_tile *out = NULL;
	kept.recomputed = 0;
	smalti_trained_begin_step(trained, task_group);
	struct smalti_trained_pass *pass =
	    smalti_trained_pass_forward(trained, task_group, &kept, true, &out);
	int status = 0;
	*probes = (struct smalti_trained_probes){.list = NULL};
	if (pass && !smalti_task_group_broken(task_group)) {
		probes->list = smalti_calloc(AROUND + pass->tape.count, sizeof(*probes->list), error);
		if (probes->list)
			probe_all(&(struct prober){task_group, probes}, pass, out);
		else
			status = -1;
	}
	smalti_trained_drop(pass);
	smalti_trained_end_step(trained);
	smalti_tile_release(out);
	return status;
}
