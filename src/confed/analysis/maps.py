"""Points of many dimensions on a plane: t-SNE after a projection on the first principal components."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

Floats = NDArray[np.floating]

_COMPONENTS = 50
_PERPLEXITY = 30.0


def on_a_plane(points: Floats, seed: int = 0) -> Floats:
    """(points, 2). The picture is seeded; distances between far points mean nothing."""
    components = min(_COMPONENTS, *points.shape)
    perplexity = min(_PERPLEXITY, max((len(points) - 1) / 3, 1.0))
    with threadpool_limits(1):
        reduced = PCA(components, random_state=seed).fit_transform(points)
        start = "pca" if components > 1 else "random"
        plane: Floats = TSNE(2, perplexity=perplexity, init=start, random_state=seed).fit_transform(reduced)
    return plane
