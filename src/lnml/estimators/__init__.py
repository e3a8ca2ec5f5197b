"""The scikit-learn faces of the methods."""
