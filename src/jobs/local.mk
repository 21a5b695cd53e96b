# Sources of src/jobs
