/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/window.h"
#include "rt/device_use.h"
#include "rt/session.h"

cJSON *smalti_extract_sizes_json(const struct smalti_extract_progress *progress)
{
	const struct {
		const char *key;
		int64_t value;
	} numbers[] = {{"pack_tokens", progress->pack_tokens},
		       {"pack_pictures", progress->pack_images},
		       {"shard_items", progress->shard_items},
		       {"memory", progress->memory}};
	cJSON *sizes = cJSON_CreateObject();
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		cJSON_AddNumberToObject(sizes, numbers[i].key, (double)numbers[i].value);
	smalti_json_add_text(sizes, "memory_of", progress->memory_of);
	return sizes;
}

static struct smalti_run_log *open_log(struct smalti_run_record *record,
				       const struct smalti_extract_progress *progress)
{
	const int count = record->workers;
	SCOPED(free) char(*text)[SMALTI_WORKER_NAME] = smalti_calloc(count, sizeof(*text), &record->lost);
	SCOPED(free) const char **names = smalti_calloc(count, sizeof(*names), &record->lost);
	struct smalti_run_log *log = NULL;
	for (int i = 0; text && names && i < count; i++) {
		smalti_session_worker_name(i, text[i]);
		names[i] = text[i];
	}
	if (text && names) {
		SCOPED(cJSON_Delete) cJSON *sizes = smalti_extract_sizes_json(progress);
		const struct smalti_run_head head = {.workers = names,
						     .worker_count = count,
						     .options = record->parts->identity,
						     .sizes = sizes};
		log = smalti_run_log_open(record->parts->options.output, &head, &record->lost);
	}
	return log;
}

void smalti_run_record_open(struct smalti_run_record *record, const struct smalti_extract_parts *parts,
			    const struct smalti_extract_progress *progress)
{
	const int workers = parts->session->workers;
	*record = (struct smalti_run_record){.parts = parts, .workers = workers};
	record->busy = smalti_calloc(workers, sizeof(double), &record->lost);
	record->busy_before = smalti_calloc(workers, sizeof(double), &record->lost);
	if (!record->busy || !record->busy_before)
		return;
	record->log = open_log(record, progress);
	for (int i = 0; i < workers; i++)
		record->busy_before[i] = smalti_session_busy(parts->session, i);
}

void smalti_run_record_add(struct smalti_run_record *record, struct smalti_run_sample sample)
{
	for (int i = 0; i < record->workers && record->log; i++)
		record->busy[i] = smalti_session_busy(record->parts->session, i) - record->busy_before[i];
	record->last = sample;
	record->last.busy = record->busy;
	smalti_run_log_add(record->log, &record->last);
}

void smalti_run_record_window(struct smalti_run_record *record, const struct smalti_window *window)
{
	if (!record->log)
		return;
	const int64_t factor = record->parts->vae ? smalti_vae_factor(&record->parts->vae->config) : 1;
	for (int64_t i = 0; i < window->count; i++) {
		const struct smalti_extract_item *item = &window->items[i];
		for (int k = 0; k < record->parts->options.caption_count; k++)
			if (item->row.texts[k].values)
				smalti_run_log_caption(record->log, item->row.texts[k].tokens);
		if (item->row.image.values)
			smalti_run_log_image(record->log, item->row.image.latent_height * factor,
					     item->row.image.latent_width * factor);
	}
}

void smalti_run_record_close(struct smalti_run_record *record, const char *end)
{
	struct smalti_device_use uses[SMALTI_MAX_NODES];
	const int count = record->log ? smalti_devices_use(record->parts->session, uses) : 0;
	if (count)
		smalti_run_log_devices(record->log, smalti_devices_use_json(uses, count));
	smalti_run_log_close(record->log, &record->last, end, &record->lost);
	free(record->busy);
	free(record->busy_before);
}
