# Sources of graphs
