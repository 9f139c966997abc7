"""Compiled code is not kept between tests, unless a test says so."""
import pytest


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setenv("GRADSCRIBE_CACHE", "off")
