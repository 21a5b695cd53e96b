# Sources of src/io
