"""Hypothesis has no deadline, because the machine may be busy; the signatures are loaded once."""

import pytest
from hypothesis import settings

from flink_triage.signatures import SignaturePack, builtin_pack_directory, load_pack

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def pack() -> SignaturePack:
    return load_pack([builtin_pack_directory()])
