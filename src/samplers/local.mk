# Sources of src/samplers
