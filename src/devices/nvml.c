/* SPDX-License-Identifier: Apache-2.0 */
#include "devices/nvml.h"

#include "base/base.h"

#include <dlfcn.h>
#include <math.h>

/* The constants of nvml.h, which comes in a separate package. */
enum { NVML_GPU_UTILIZATION_SAMPLES = 1, NVML_VALUE_TYPE_UNSIGNED_INT = 1 };

struct sample {
	unsigned long long time; /* microseconds since 1970 */
	union {
		double number;
		unsigned whole;
	} value;
};

struct smalti_nvml {
	void *library, *device;
	int (*init)(void);
	int (*shutdown)(void);
	int (*handle)(const char *bus_id, void **device);
	int (*samples)(void *device, int kind, unsigned long long since, int *type, unsigned *count,
		       struct sample *samples);
};

static bool load(struct smalti_nvml *nvml)
{
	const struct {
		const char *name;
		void **function;
	} symbols[] = {
	    {"nvmlInit_v2", (void **)&nvml->init},
	    {"nvmlShutdown", (void **)&nvml->shutdown},
	    {"nvmlDeviceGetHandleByPciBusId_v2", (void **)&nvml->handle},
	    {"nvmlDeviceGetSamples", (void **)&nvml->samples},
	};
	bool all = true;
	for (size_t i = 0; i < COUNT_OF(symbols); i++)
		all = all && (*symbols[i].function = dlsym(nvml->library, symbols[i].name));
	return all;
}

static double mean(const struct sample *samples, unsigned count)
{
	double sum = 0;
	for (unsigned i = 0; i < count; i++)
		sum += samples[i].value.whole;
	return count ? sum / count / 100 : (double)NAN;
}

void smalti_nvml_close(struct smalti_nvml *nvml)
{
	if (!nvml)
		return;
	if (nvml->device)
		nvml->shutdown();
	if (nvml->library)
		dlclose(nvml->library);
	free(nvml);
}

static bool find(struct smalti_nvml *nvml, const char *bus_id)
{
	nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!nvml->library || !load(nvml) || nvml->init())
		return false;
	if (nvml->handle(bus_id, &nvml->device) == 0)
		return true;
	nvml->device = NULL;
	nvml->shutdown();
	return false;
}

struct smalti_nvml *smalti_nvml_open(const char *bus_id)
{
	struct smalti_nvml *nvml = smalti_calloc(1, sizeof(*nvml), NULL);
	if (!nvml || find(nvml, bus_id))
		return nvml;
	smalti_nvml_close(nvml);
	return NULL;
}

/* Asks for the number of samples first, then for the samples. No new samples is an error. */
double smalti_nvml_utilisation(const struct smalti_nvml *nvml, uint64_t since)
{
	unsigned count = 0;
	int type = 0;
	if (nvml->samples(nvml->device, NVML_GPU_UTILIZATION_SAMPLES, since, &type, &count, NULL))
		return (double)NAN;
	SCOPED(free) struct sample *samples = smalti_calloc(count, sizeof(*samples), NULL);
	if (!samples ||
	    nvml->samples(nvml->device, NVML_GPU_UTILIZATION_SAMPLES, since, &type, &count, samples) ||
	    type != NVML_VALUE_TYPE_UNSIGNED_INT)
		return (double)NAN;
	return mean(samples, count);
}
