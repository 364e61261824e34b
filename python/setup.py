"""Builds the programs into the package, and a wheel with the platform's tag.

The programs are those of the folder HUSHSUM_PROGRAMS, for the platforms that
HUSHSUM_WHEEL_PLATFORM tags, or are built with Go from the checkout that this file is in.
"""

import os
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent
PROGRAMS = {
    "hushsum": "./cmd/hushsum",
    "hushsumd": "./service/cmd/hushsumd",
    "hushsum-rows": "./tables/cmd/hushsum-rows",  # which both start
}


class BuildPrograms(build_py):
    """Puts the programs next to the modules."""

    def run(self) -> None:
        super().run()
        folder = Path(self.build_lib).resolve() / "hushsum" / "_bin"  # go build runs elsewhere
        folder.mkdir(parents=True, exist_ok=True)
        given = os.environ.get("HUSHSUM_PROGRAMS")
        for name, package in PROGRAMS.items():
            if given:
                built = Path(given) / name
                if not built.exists():
                    built = built.with_suffix(".exe")
                shutil.copy2(built, folder / built.name)
            else:
                subprocess.run(
                    ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(folder / name), package],
                    cwd=HERE.parent, check=True,
                )


class PlatformWheel(bdist_wheel):
    """Has a program of one platform, and works with every Python 3."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", os.environ.get("HUSHSUM_WHEEL_PLATFORM") or super().get_tag()[2])


setup(cmdclass={"build_py": BuildPrograms, "bdist_wheel": PlatformWheel})
