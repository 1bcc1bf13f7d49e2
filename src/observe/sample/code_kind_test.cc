#include "observe/sample/code_kind.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(CodeKind, LibrariesAreKnownByTheirPaths) {
  const std::string site = "/opt/venv/lib/python3.11/site-packages/";
  EXPECT_EQ(code_kind(site + "pillow.libs/libjpeg-32d42e15.so.62.4.0"), CodeKind::kData);
  EXPECT_EQ(code_kind(site + "PIL/_imaging.cpython-311-x86_64-linux-gnu.so"), CodeKind::kData);
  EXPECT_EQ(code_kind(site + "cv2/cv2.abi3.so"), CodeKind::kData);
  EXPECT_EQ(code_kind(site + "torchvision/image.so"), CodeKind::kData);
  EXPECT_EQ(code_kind("/usr/lib/x86_64-linux-gnu/libz.so.1.2.13"), CodeKind::kData);
  EXPECT_EQ(code_kind(site + "torch/lib/libtorch_cpu.so"), CodeKind::kMath);
  EXPECT_EQ(code_kind(site + "torchvision/_C.so"), CodeKind::kMath);
  EXPECT_EQ(code_kind("/tmp/torchinductor_me/ab/cabc.so"), CodeKind::kMath);
  EXPECT_EQ(code_kind(site + "torch/lib/libtorch_cuda.so"), CodeKind::kDevice);
  EXPECT_EQ(code_kind(site + "nvidia/cudnn/lib/libcudnn_engines.so.9"), CodeKind::kDevice);
  EXPECT_EQ(code_kind("/usr/lib/x86_64-linux-gnu/libcuda.so.550.54"), CodeKind::kDevice);
  EXPECT_EQ(code_kind("/usr/bin/python3.11"), CodeKind::kInterpreter);
  EXPECT_EQ(code_kind("/opt/conda/lib/libpython3.12.so.1.0"), CodeKind::kInterpreter);
}

TEST(CodeKind, WhatServesBothSidesIsNeither) {
  EXPECT_EQ(code_kind("/opt/lib/python3.11/site-packages/numpy/core/_multiarray_umath.so"),
            CodeKind::kOther);
  EXPECT_EQ(code_kind("/usr/lib/x86_64-linux-gnu/libc.so.6"), CodeKind::kOther);
  EXPECT_EQ(code_kind("[vdso]"), CodeKind::kOther);
  EXPECT_EQ(code_kind(""), CodeKind::kOther);
}

}  // namespace
}  // namespace stoker
