"""What a JSON Schema means in Python: a foreign schema as a dataclass, a dataclass as a schema, values in between."""

from outfitter.schemas.absent import ABSENT, Absent
from outfitter.schemas.foreign import read_schema
from outfitter.schemas.native import shape_of
from outfitter.schemas.shape import Fault, Shape

__all__ = ["ABSENT", "Absent", "Fault", "Shape", "read_schema", "shape_of"]
