"""p4.tmp, where the p4runtime package has none: PI's own build of these modules has it, PyPI's has not."""

import importlib.util
from pathlib import Path

try:
    import p4
except ImportError:
    pass
else:
    if importlib.util.find_spec("p4.tmp") is None:
        p4.__path__.append(str(Path(__file__).parent / "p4_modules"))
