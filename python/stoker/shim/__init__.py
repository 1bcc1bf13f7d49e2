"""Builds (once per PyTorch, a few seconds) and loads the library that lets fake tensors dispatch as on CUDA.

Imports no torch: the library has to be loaded before it.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from .. import caches

SOURCE = pathlib.Path(__file__).with_name("fake_cuda.cpp")
COMPILE_LIMIT_S = 120


class ShimError(Exception):
    """The library could not be built or loaded; the message says why."""


def torch_folder() -> pathlib.Path | None:
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return None
    return pathlib.Path(list(spec.submodule_search_locations)[0])


def torch_version(folder: pathlib.Path) -> tuple[str, bool]:
    """The version of the PyTorch in `folder` and whether it is a GPU build, without importing it."""
    text = (folder / "version.py").read_text()
    version = re.search(r"__version__\s*=\s*['\"]([^'\"]+)", text)
    gpu = re.search(r"^(?:cuda|hip)\b[^=\n]*=\s*['\"]", text, re.M)
    return (version.group(1) if version else "unknown"), bool(gpu)


def gpu_works(folder: pathlib.Path) -> bool:
    """Whether this PyTorch would find a GPU here (asks the driver, not PyTorch)."""
    if not torch_version(folder)[1]:
        return False
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return False
    try:
        driver = ctypes.CDLL("libcuda.so.1" if sys.platform != "win32" else "nvcuda.dll")
        count = ctypes.c_int(0)
        return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
    except OSError:
        return pathlib.Path("/dev/kfd").exists()  # ROCm's device file


def find_compiler() -> str | None:
    for name in (os.environ.get("CXX"), "g++", "clang++", "c++"):
        if name and shutil.which(name):
            return name
    return None


def _uses_old_abi(folder: pathlib.Path) -> bool:
    """PyTorch's wheels before 2.7 were built with the string ABI of before C++11; c10's own symbols tell."""
    library = folder / "lib" / "libc10.so"
    return library.exists() and b"c105ErrorC1ENS_14SourceLocationENSt7__cxx11" not in library.read_bytes()


def _compile(compiler: str, folder: pathlib.Path, out: pathlib.Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    errors = ""
    for standard in ("c++20", "c++17"):
        with tempfile.NamedTemporaryFile(dir=out.parent, suffix=".so", delete=False) as part:
            pass
        command = [compiler, f"-std={standard}", "-O1", "-w", "-shared", "-fPIC",
                   f"-D_GLIBCXX_USE_CXX11_ABI={0 if _uses_old_abi(folder) else 1}", f"-I{folder}/include",
                   f"-I{folder}/include/torch/csrc/api/include", str(SOURCE), f"-L{folder}/lib", "-ltorch_cpu", "-lc10",
                   f"-Wl,-rpath,{folder}/lib", "-o", part.name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_LIMIT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            os.unlink(part.name)
            raise ShimError(f"{compiler} failed: {error}") from None
        if done.returncode == 0:
            os.replace(part.name, out)  # atomic: two captures may build at once
            caches.wrote(out)
            return
        os.unlink(part.name)
        errors = done.stderr
    first = next((line for line in errors.splitlines() if "error" in line), "no message")
    raise ShimError(f"{compiler} could not compile the fake CUDA library: {first.strip()[:300]}")


def library_path(say=lambda text: None) -> pathlib.Path:
    """Path of the compiled library for the installed PyTorch, building it if the cache has none."""
    folder = torch_folder()
    if folder is None:
        raise ShimError("no PyTorch")
    version = torch_version(folder)[0]
    key = hashlib.sha256(f"{version} {folder}".encode() + SOURCE.read_bytes()).hexdigest()[:16]
    out = caches.folder() / f"fake-cuda-{version}-{key}.so"
    unsafe = caches.not_ours(out)
    if unsafe:
        raise ShimError(unsafe)
    if out.exists():
        return out
    compiler = find_compiler()
    if compiler is None:
        raise ShimError("no C++ compiler (g++ or clang++)")
    say(f"building the fake CUDA library for PyTorch {version} (once, a few seconds)")
    try:
        _compile(compiler, folder, out)
    except OSError as error:
        raise ShimError(f"cannot write {out.parent}: {error.strerror}") from None
    return out


def load(say=lambda text: None) -> ctypes.CDLL:
    """Loads the library. Call it before `import torch`, and `stoker_register_guard()` of the result after."""
    path = library_path(say)
    if not caches.hold(str(path)):  # another process has pruned it just now
        path = library_path(say)
    try:
        return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise ShimError(f"cannot load {path}: {error}") from None
