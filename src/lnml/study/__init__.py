"""The study of the paper: its data sets and methods, and our results beside the paper's."""
