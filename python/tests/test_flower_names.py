"""The adapter's tests by the names of both of Flower's generations, wherever Flower is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import flower_double


@pytest.mark.parametrize("source", flower_double.SOURCES)
def test_names(source: str) -> None:
    tests = Path(__file__).with_name("test_flower.py")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)],
        env={**os.environ, "HUSHSUM_FLOWER": source}, capture_output=True, text=True)
    assert ran.returncode == 0 and "18 passed" in ran.stdout, ran.stdout + ran.stderr
