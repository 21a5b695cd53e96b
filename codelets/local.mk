libcore_la_SOURCES += \
	codelets/argument_structs.h codelets/arguments.h \
	codelets/attention.c \
	codelets/attention_backward.c \
	codelets/backward.c \
	codelets/codelets.def codelets/codelets.h codelets/table.c \
	codelets/conv.c \
	codelets/cpus.c \
	codelets/devices.c codelets/devices.h \
	codelets/dit.c \
	codelets/layout.c \
	codelets/linear.c \
	codelets/norm.c \
	codelets/retrieve.c \
	codelets/sampler.c \
	codelets/shards.c \
	codelets/train.c \
	codelets/device_attention.c \
	codelets/device_backward.c \
	codelets/device_conv.c \
	codelets/device_dit.c \
	codelets/device_linear.c \
	codelets/device_parts.c codelets/device_parts.h \
	codelets/device_retrieve.c \
	codelets/device_rows.c \
	codelets/device_text.c \
	codelets/device_update.c \
	codelets/device_wide_attention.c
