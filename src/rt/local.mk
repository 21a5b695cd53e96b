# Sources of src/rt
