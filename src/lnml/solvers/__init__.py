"""How a metric is found: one path for all objectives, one minimiser for each form of them."""
