"""The binary that tests run. A module that imports this is skipped where there is none: scripts/test sets STOKER_BINARY."""

import pytest

from stoker.binary import StokerError, find_binary

try:
    STOKER = find_binary()
except StokerError:
    pytest.skip("the stoker binary is not built", allow_module_level=True)
