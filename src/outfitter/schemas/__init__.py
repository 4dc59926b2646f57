"""What a JSON Schema means in Python: a foreign schema as a dataclass, a dataclass as a schema, values in between."""

from outfitter.schemas.native import shape_of
from outfitter.schemas.shape import Fault, Shape

__all__ = ["Fault", "Shape", "shape_of"]
