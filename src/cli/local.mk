# Sources of src/cli
