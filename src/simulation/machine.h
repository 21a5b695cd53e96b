/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "base/work.h"

/* A machine that is simulated, as its file in machines/ describes it (docs/simulate.md). */

/* What the rates of each kind of arithmetic are called. @{ */
extern const char *const smalti_machine_works[SMALTI_WORKS];
extern const char *const smalti_machine_precisions[];
/* @} */

/* What StarPU's build for simulation takes (scripts/starpu). */
enum { SMALTI_MACHINE_CPUS = 48, SMALTI_MACHINE_GPUS = 128 };

enum { SMALTI_MACHINE_PRECISIONS = 4, SMALTI_MACHINE_GPU_KINDS = 8, SMALTI_MACHINE_NAME = 64 };

/* Workers that are alike. */
struct smalti_machine_kind {
	char name[SMALTI_MACHINE_NAME];
	int64_t count;
	double memory;    /* bytes: of each GPU, of all CPUs */
	double launch;    /* seconds that an operation takes at least */
	double bandwidth; /* bytes a second that an operation moves */
	double half;      /* operations of a task that runs at half its rate */
	/* Operations a second, by enum smalti_precision; 0: it has none. */
	double rates[SMALTI_WORKS][SMALTI_MACHINE_PRECISIONS];
};

/* Bytes a second, and seconds. */
struct smalti_machine_link {
	double bandwidth, latency;
};

struct smalti_simulated_machine {
	char name[SMALTI_MACHINE_NAME];
	struct smalti_machine_kind cpu;
	struct smalti_machine_kind gpu[SMALTI_MACHINE_GPU_KINDS];
	int gpu_kinds;
	struct smalti_machine_link pcie; /* of each GPU, in each direction */
	double host; /* bytes a second through main memory, of all GPUs of a node together */
	struct smalti_machine_link nvlink;   /* of each pair of GPUs; bandwidth 0: none */
	struct smalti_machine_link nvswitch; /* of each GPU, in each direction; bandwidth 0: none */
	int64_t nodes; /* that the GPUs are spread over, as many on each; main memory is as near to all */
	struct smalti_machine_link network; /* of each node, in each direction */
	/* What a GPU receives at from others, and a task waits at least, in a program whose exchanges block.
	 */
	struct smalti_machine_link exchange;
	bool blocking; /* it runs such a program */
};

/* The file, or with a name that has no '/' and no '.', the one of that name that is shipped. SMALTI_EIO,
 * SMALTI_EFORMAT. */
int smalti_machine_read(const char *file, struct smalti_simulated_machine *machine,
			struct smalti_error *error);
/* The same from a file's object. */
int smalti_machine_parse(const cJSON *file, struct smalti_simulated_machine *machine,
			 struct smalti_error *error);
/* Has it run a program whose exchanges block: from here on a GPU is busy while it receives, and links between
 * GPUs take no time beside that. Where the file says nothing of exchanges they are as fast as those links. */
void smalti_machine_block(struct smalti_simulated_machine *machine);
/* Its path: as above. Free with free(). */
char *smalti_machine_path(const char *file, struct smalti_error *error);

int64_t smalti_machine_gpus(const struct smalti_simulated_machine *machine);
/* The kind of GPU `gpu`. */
const struct smalti_machine_kind *smalti_machine_gpu(const struct smalti_simulated_machine *machine,
						     int64_t gpu);

/* The node that it is on, from 0 on. */
int64_t smalti_machine_node(const struct smalti_simulated_machine *machine, int64_t gpu);
/* What joins two GPUs, in seconds and bytes a second if nothing else is under way. */
struct smalti_machine_link smalti_machine_between(const struct smalti_simulated_machine *machine,
						  int64_t from, int64_t to);

/* What an operation takes there, in seconds; `precision` is of arithmetic that has a rate. */
double smalti_machine_seconds(const struct smalti_machine_kind *kind, enum smalti_work work, int precision,
			      double flops, double bytes);

/* What a GPU waits for what a task receives, in seconds; 0 where exchanges do not block. */
double smalti_machine_wait(const struct smalti_simulated_machine *machine, double bytes);

/* Writes what StarPU asks of a machine of that name into directory/bus. */
int smalti_machine_write(const struct smalti_simulated_machine *machine, const char *directory,
			 const char *name, struct smalti_error *error);
