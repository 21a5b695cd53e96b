/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "base/work.h"

/* A simulated machine, as its file in machines/ describes it (docs/simulate.md). */

/* The names of works and precisions in the file. @{ */
extern const char *const smalti_machine_works[SMALTI_WORKS];
extern const char *const smalti_machine_precisions[];
/* @} */

/* The most that StarPU's build for simulation takes (scripts/starpu). */
enum { SMALTI_MACHINE_CPUS = 48, SMALTI_MACHINE_GPUS = 128 };

enum { SMALTI_MEGAPIXEL_BYTES = 3 * 4 * 1000000 }; /* three channels, f32 */
/* Precisions are those of enum smalti_precision that all arithmetic may have, and integers of 8 bits, which
 * only products have. */
enum { SMALTI_MACHINE_INT8 = 4, SMALTI_MACHINE_PRECISIONS };
enum { SMALTI_MACHINE_GPU_KINDS = 8, SMALTI_MACHINE_NAME = 64 };

/* Equal workers. */
struct smalti_machine_kind {
	char name[SMALTI_MACHINE_NAME];
	int64_t count;
	double memory;    /* bytes: of each GPU, of all CPUs */
	double launch;    /* seconds that an operation takes at least */
	double bandwidth; /* bytes a second that an operation moves */
	double pictures;  /* bytes a second of pixels, as f32, that are decoded; 0: as fast as bytes move */
	double half;      /* operations of a task that runs at half its rate */
	/* Operations a second, by precision; 0: it has none. */
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
	int64_t nodes; /* the GPUs are spread evenly over these; main memory is as near to all */
	struct smalti_machine_link network; /* of each node, in each direction */
	/* The rate at which a GPU receives from others, and the least wait of a task, if exchanges block. */
	struct smalti_machine_link exchange;
	double storage_read, storage_write; /* bytes a second of the files' storage; 0: unknown */
	bool blocking;                      /* it runs a program whose exchanges block */
};

/* Reads the file; a name without '/' and '.' is that of a shipped file. SMALTI_EIO, SMALTI_EFORMAT. */
int smalti_machine_read(const char *file, struct smalti_simulated_machine *machine,
			struct smalti_error *error);
int smalti_machine_parse(const cJSON *file, struct smalti_simulated_machine *machine,
			 struct smalti_error *error);
/* Makes it run a program whose exchanges block: a GPU is busy while it receives, and links between GPUs take
 * no time beside that. Where the file has no exchanges, they are as fast as those links. */
void smalti_machine_block(struct smalti_simulated_machine *machine);
/* Returns the path of such a file, for free(). */
char *smalti_machine_path(const char *file, struct smalti_error *error);

int64_t smalti_machine_gpus(const struct smalti_simulated_machine *machine);
const struct smalti_machine_kind *smalti_machine_gpu(const struct smalti_simulated_machine *machine,
						     int64_t gpu);

/* Returns the node of a GPU, from 0 on. */
int64_t smalti_machine_node(const struct smalti_simulated_machine *machine, int64_t gpu);
/* Returns the link between two GPUs, in seconds and bytes a second if nothing else uses it. */
struct smalti_machine_link smalti_machine_between(const struct smalti_simulated_machine *machine,
						  int64_t from, int64_t to);

/* Returns the seconds of an operation; `precision` is of arithmetic that has a rate. */
double smalti_machine_seconds(const struct smalti_machine_kind *kind, enum smalti_work work, int precision,
			      double flops, double bytes);

/* Returns how many seconds a GPU waits for what a task receives; 0 where exchanges do not block. */
double smalti_machine_wait(const struct smalti_simulated_machine *machine, double bytes);

/* Writes StarPU's files of a machine of that name into directory/bus. */
int smalti_machine_write(const struct smalti_simulated_machine *machine, const char *directory,
			 const char *name, struct smalti_error *error);
