"""The study of the paper: its data sets, methods and tables, ours beside theirs."""
