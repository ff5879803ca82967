"""Arrays with their shapes, as annotations: `Float[Array, "classifier point"]`.

The tests check them at every call by jaxtyping, without which an annotation is any array.
"""

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, Shaped
else:
    try:
        from jaxtyping import Bool, Float, Int, Shaped
    except ImportError:

        class _AnyShape:
            """Annotation that accepts an array of any shape."""

            def __class_getitem__(cls, _: Any) -> Any:
                return Any

        Bool = Float = Int = Shaped = _AnyShape

__all__ = ["Bool", "Bools", "Float", "Floats", "Int", "Ints", "Shaped", "no_type_check"]

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

T = TypeVar("T")


def no_type_check(item: T) -> T:
    """Left alone by the tests' checks of annotations, which know the decorator by this name."""
    # For doors where users' arguments of any kind are refused in our words, and for JAX's trees.
    return item
