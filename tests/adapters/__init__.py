"""The adapters, each held to one suite: `conformance` states it and the protocol of a driver."""

import pytest

pytest.register_assert_rewrite("tests.adapters.conformance")
