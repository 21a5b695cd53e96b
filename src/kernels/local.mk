libcore_la_SOURCES += \
	src/kernels/attention.h src/kernels/conv.h src/kernels/elementwise.h src/kernels/isa.h \
	src/kernels/matmul.h src/kernels/norms.h src/kernels/scratch.h \
	src/kernels/scratch.c \
	src/kernels/cpu/conv.c \
	src/kernels/cpu/matmul.c \
	src/kernels/cpu/onednn.c src/kernels/cpu/onednn.h \
	src/kernels/cpu/pack.c
