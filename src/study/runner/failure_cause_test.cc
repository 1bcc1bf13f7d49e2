#include "study/runner/failure_cause.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stoker::study {
namespace {

using Figures = std::map<std::string, double>;

constexpr double kMega = 1024.0 * 1024, kGiga = 1024.0 * kMega;

/// Whole bytes of a size that a message gives with two digits behind the point.
double bytes(double count, double unit) { return std::floor(count * unit); }

TEST(FailureCause, NumbersOfPyTorchSinceTwoPointOne) {
  const auto found = out_of_memory_in(
      "epoch 3\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has "
      "a total capacity of 15.77 GiB of which 1.05 GiB is free. Process 12 has 14.72 GiB memory in "
      "use. Of the allocated memory 13.90 GiB is allocated by PyTorch, and 210.11 MiB is reserved "
      "by PyTorch but unallocated. If reserved but unallocated memory is large try setting ...\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cause, "cuda_out_of_memory");
  const Figures expected{{"gpu_asked_bytes", 2 * kGiga},
                         {"gpu_total_bytes", bytes(15.77, kGiga)},
                         {"gpu_free_bytes", bytes(1.05, kGiga)},
                         {"gpu_allocated_bytes", bytes(13.90, kGiga)},
                         {"gpu_reserved_unallocated_bytes", bytes(210.11, kMega)}};
  EXPECT_EQ(found->figures, expected);
}

TEST(FailureCause, NumbersOfOlderPyTorchAndOfAFullDevice) {
  const auto found = out_of_memory_in(
      "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.92 GiB total "
      "capacity; 9.79 GiB already allocated; 0 bytes free; 10.35 GiB reserved in total by "
      "PyTorch)");
  ASSERT_TRUE(found);
  const Figures expected{{"gpu_asked_bytes", 20 * kMega},
                         {"gpu_total_bytes", bytes(10.92, kGiga)},
                         {"gpu_free_bytes", 0},
                         {"gpu_allocated_bytes", bytes(9.79, kGiga)}};
  EXPECT_EQ(found->figures, expected);
}

TEST(FailureCause, SmallSizesAreInBytes) {
  const auto found = out_of_memory_in(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512 bytes. GPU 0 has a total "
      "capacity of 39.39 GiB of which 768 bytes is free. 8.00 KiB is reserved by PyTorch but "
      "unallocated");
  ASSERT_TRUE(found);
  const Figures expected{{"gpu_asked_bytes", 512},
                         {"gpu_total_bytes", bytes(39.39, kGiga)},
                         {"gpu_free_bytes", 768},
                         {"gpu_reserved_unallocated_bytes", 8192}};
  EXPECT_EQ(found->figures, expected);
}

TEST(FailureCause, WordsOfEachFramework) {
  const auto cause = [](const char* output) {
    const auto found = out_of_memory_in(output);
    return found ? found->cause : std::string();
  };
  EXPECT_EQ(cause("jaxlib.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying"),
            "cuda_out_of_memory");
  EXPECT_EQ(cause("RuntimeError: HIP out of memory. Tried"), "cuda_out_of_memory");
  EXPECT_EQ(cause("RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you "
                  "tried to allocate 1 bytes"),
            "host_out_of_memory");
  EXPECT_EQ(cause("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8.00 TiB"),
            "host_out_of_memory");
  EXPECT_EQ(cause("terminate called after throwing an instance of 'std::bad_alloc'"),
            "host_out_of_memory");
  EXPECT_EQ(cause("ValueError: the memory of a goldfish"), "");
}

TEST(FailureCause, TheLastWordCounts) {
  const auto found = out_of_memory_in(
      "CUDA out of memory. Tried to allocate 1.00 GiB: halving the batch\nepoch 1\nMemoryError\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cause, "host_out_of_memory");
  EXPECT_EQ(found->reason, "MemoryError");
  EXPECT_TRUE(found->figures.empty());
}

TEST(FailureCause, LinesOfTheEnd) {
  EXPECT_EQ(last_lines("a\nb\nc\n\n", 2), "b\nc");
  EXPECT_EQ(last_lines("a\nb\nc", 9), "a\nb\nc");
  EXPECT_EQ(last_lines("", 3), "");
  EXPECT_EQ(last_lines("one long line", 5, 4), "line");
  EXPECT_EQ(last_lines("a\x1b[31mb", 5), "a [31mb");
}

TEST(FailureCause, TheErrorIsPythonsExceptionAndNotWhatFollowsIt) {
  EXPECT_EQ(error_line("Traceback (most recent call last):\n  File \"t.py\", line 3, in f\n    "
                       "raise KeyError: 3\nKeyError: 'lr'\nwandb: synced\n"),
            "KeyError: 'lr'");
  EXPECT_EQ(error_line("cannot open data\n\n"), "cannot open data");
  EXPECT_EQ(error_line("\n \n"), "");
}

TEST(FailureCause, AScriptWhosePythonLacksTheReporterIsToldWhatHelps) {
  EXPECT_EQ(cure_of("ModuleNotFoundError: No module named 'stoker'"),
            "; pip install it into the Python that the command runs");
  EXPECT_EQ(cure_of("ModuleNotFoundError: No module named 'torch'"), "");
}

TEST(FailureCause, SignalsHaveTheirNames) {
  EXPECT_EQ(signal_words(9), "SIGKILL (9)");
  EXPECT_EQ(signal_words(15), "SIGTERM (15)");
  EXPECT_EQ(signal_words(200), "signal (200)");
}

}  // namespace
}  // namespace stoker::study
