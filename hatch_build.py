"""Compiles the C kernels into the wheel, where there is a compiler; elsewhere the wheel is pure Python.

Nothing but hatchling is needed: the kernels are plain C. SACCADE_PURE_WHEEL=1 leaves them out.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags


class KernelHook(BuildHookInterface):
    """Adds saccade/kernels/prebuilt/ to wheels, and makes them those of a platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is packed."""
        wanted = shlex.split(os.environ.get("CC", "")) or ["cc"]
        found = shutil.which(wanted[0]) or shutil.which("gcc") or shutil.which("clang")
        if self.target_name != "wheel" or version == "editable" or os.environ.get("SACCADE_PURE_WHEEL") == "1":
            return
        if found is None:
            self.app.display_warning("No C compiler: the wheel has no compiled kernels.")
            return
        spec = importlib.util.spec_from_file_location("prebuilt", Path(self.root, "saccade", "kernels", "prebuilt.py"))
        assert spec is not None
        assert spec.loader is not None
        prebuilt = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(prebuilt)
        self.made = tempfile.mkdtemp()
        try:
            files = prebuilt.build(Path(self.made), [found, *wanted[1:]])
        except (OSError, subprocess.SubprocessError) as error:
            self.app.display_warning(f"The kernels could not be compiled, and the wheel has none: {error}")
            return
        build_data["force_include"] |= {str(file): f"saccade/kernels/prebuilt/{file.name}" for file in files}
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{next(sys_tags()).platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called once the wheel is packed."""
        shutil.rmtree(getattr(self, "made", ""), ignore_errors=True)
