"""What Outfitter promises, and which tests keep it.

A test keeps a promise by carrying ``@pytest.mark.promise("ID")``. A promise without a test, or a mark without a
promise, fails the build (tests/house/test_promises.py). Write ids and sentences as plain strings: the house test reads
these files without running them.
"""

from __future__ import annotations
