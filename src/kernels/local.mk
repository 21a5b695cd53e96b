# Sources of src/kernels
