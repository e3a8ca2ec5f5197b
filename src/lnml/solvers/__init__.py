"""How a metric is found."""
