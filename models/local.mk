# Sources of models
