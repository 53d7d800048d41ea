"""Studies on the ordinary machinery: the paper, the comparison, and the baselines of both."""
