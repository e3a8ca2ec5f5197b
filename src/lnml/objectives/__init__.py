"""What a method asks of a metric, given a neighbourhood: one file a method."""
