# Sources of src/samplers
libcore_la_SOURCES += \
	src/samplers/apply.c \
	src/samplers/config.h \
	src/samplers/ddim.c \
	src/samplers/ddpm.c \
	src/samplers/diffusion_loss.c src/samplers/diffusion_loss.h \
	src/samplers/draws.c src/samplers/draws.h \
	src/samplers/dpm_solver.c \
	src/samplers/element.h \
	src/samplers/euler.c \
	src/samplers/lcm.c \
	src/samplers/train_sigmas.c \
	src/samplers/noise.c src/samplers/noise.h \
	src/samplers/prediction.c \
	src/samplers/sa_solver.c \
	src/samplers/sampler.c src/samplers/sampler.h src/samplers/step.h \
	src/samplers/sampler_names.c \
	src/samplers/schedule.h \
	src/samplers/sigmas.c \
	src/samplers/timesteps.c \
	src/samplers/unipc.c
