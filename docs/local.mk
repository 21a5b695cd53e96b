# Sources of docs
