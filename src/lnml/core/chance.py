"""Where random numbers come from."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def own_generator(random_state: Any) -> np.random.RandomState:
    """Return the generator that a ``random_state`` stands for; a new one for None.

    scikit-learn takes NumPy's global generator for None. A fit would then change the random
    numbers of the program around it.
    """
    return np.random.RandomState() if random_state is None else check_random_state(random_state)
