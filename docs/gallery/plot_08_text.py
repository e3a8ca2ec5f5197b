"""
Text
====

Texts become vectors by TF-IDF and a truncated SVD. A learned metric says which of their directions
matter for the classes.
"""

# %%
# A corpus that everybody has: the first twenty words of the docstrings of SciPy. The class of a
# text is the subpackage that it comes from. (Other versions of SciPy give other figures.)
import importlib
import inspect
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from lnml import LMNN

PACKAGES = ("linalg", "ndimage", "signal", "special", "stats", "interpolate")
texts, kinds = [], []
for package in PACKAGES:
    module = importlib.import_module(f"scipy.{package}")
    for name in sorted(module.__all__):
        words = (inspect.getdoc(getattr(module, name)) or "").split()
        if len(words) >= 20:
            # Not the name of the function, which often tells the subpackage.
            texts.append(" ".join(word for word in words[:20] if name not in word))
            kinds.append(package)
texts, kinds = np.array(texts), np.array(kinds)
print(fill(f"{len(texts)} texts, such as: {texts[100]}", 90))

# %%
# Rows are scaled to length one, so that Euclidean distance ranks as the cosine does. LMNN gets a
# penalty: 50 columns and some hundred rows invite overfitting. All steps are fitted to the training
# part of each of five folds.
vectors = [
    TfidfVectorizer(stop_words="english", min_df=2),
    TruncatedSVD(50, random_state=0),
    Normalizer(),
]
folds = StratifiedKFold(5, shuffle=True, random_state=0)
for name, learner in (("cosine", []), ("learned", [LMNN(trace_penalty=0.1)])):
    steps = make_pipeline(*vectors, *learner, KNeighborsClassifier(3))
    predicted = cross_val_predict(steps, texts, kinds, cv=folds)
    right = 100 * (predicted == kinds)
    scores = [right[test].mean() for _, test in folds.split(texts, kinds)]
    print(f"{name:8} {right.mean():.1f} % right, fold by fold {np.round(scores, 1)}")

# %%
# What is taken for what, with the learned metric:
fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
ConfusionMatrixDisplay.from_predictions(
    kinds, predicted, ax=ax, xticks_rotation=45, colorbar=False, cmap="Blues"
)
plt.show()
