/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA's management library, as far as Smalti calls it: the GPU on bus N was busy for N % and 3 N % of the
 * time of two samples. */
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" {
struct sample {
	unsigned long long time;
	unsigned long long value;
};

int nvmlInit_v2(void)
{
	return 0;
}

int nvmlShutdown(void)
{
	return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, uintptr_t *device)
{
	*device = strtoul(bus_id + strlen("0000:"), nullptr, 16);
	return *device == 0;
}

int nvmlDeviceGetSamples(uintptr_t device, int kind, unsigned long long since, int *type, unsigned *count,
			 struct sample *samples)
{
	const int utilisation = 1, whole = 1;
	*type = whole;
	if (samples)
		for (unsigned i = 0; i < *count; i++)
			samples[i] = {since + i + 1, device * (2 * i + 1)};
	else
		*count = 2;
	return kind != utilisation;
}
}
