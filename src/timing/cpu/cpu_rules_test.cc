#include "timing/cpu/cpu_rules.h"

#include <gtest/gtest.h>

#include "operators/cpu_functions.h"
#include "timing/common/testing.h"

namespace stoker {
namespace {

using timing_test::round_cpu;

Kernel elements(std::int64_t n, KernelClass kernel_class = KernelClass::kElementwise) {
  Kernel kernel;
  kernel.kernel_class = kernel_class;
  kernel.elements = n;
  kernel.read = Bytes(8 * n);
  kernel.written = Bytes(4 * n);
  return kernel;
}

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.kernel_class = KernelClass::kGemm;
  kernel.flops = Flops(2.0 * static_cast<double>(m * n * k));
  kernel.read = Bytes(4 * (m * k + k * n));
  kernel.written = Bytes(4 * m * n);
  kernel.shape = GemmShape{1, m, n, k};
  return kernel;
}

Kernel recurrent(std::int64_t batch, std::int64_t hidden, bool backward) {
  constexpr std::int64_t kLength = 28;
  constexpr int kGates = 4;
  Kernel kernel;
  kernel.kernel_class = KernelClass::kRnn;
  const std::int64_t weights = kGates * hidden * 2 * hidden;
  kernel.flops = Flops((backward ? 4.0 : 2.0) * static_cast<double>(batch * kLength * weights));
  RnnShape shape;
  shape.batch = batch, shape.length = kLength, shape.input = hidden, shape.hidden = hidden;
  shape.gates = kGates, shape.backward = backward;
  kernel.shape = shape;
  return kernel;
}

TEST(ThreadsFor, AsManyAsThereAreGrains) {
  EXPECT_EQ(threads_for(1, 32768, 4), 1);
  EXPECT_EQ(threads_for(32768, 32768, 4), 1);
  EXPECT_EQ(threads_for(32769, 32768, 4), 2);
  EXPECT_EQ(threads_for(1 << 20, 32768, 4), 4);
  EXPECT_EQ(threads_for(0, 1, 4), 1);
}

TEST(CpuCost, BelowTheGrainThreadsChangeNothing) {
  const CpuProcessor one(round_cpu(), 1), four(round_cpu(), 4);
  const Kernel small = elements(30000), large = elements(1 << 22);
  EXPECT_EQ(cpu_cost(small, "add", one, {CpuData::kWarm}).total(),
            cpu_cost(small, "add", four, {CpuData::kWarm}).total());
  EXPECT_LT(cpu_cost(large, "gelu", four, {CpuData::kWarm}).total(),
            0.6 * cpu_cost(large, "gelu", one, {CpuData::kWarm}).total());
}

TEST(CpuCost, RegionsCostSomething) {
  const CpuProcessor four(round_cpu(), 4);
  const Kernel kernel = elements(40000);
  EXPECT_EQ(cpu_cost(kernel, "add", four, {CpuData::kWarm}).rest, four.rates(2).region);
}

TEST(CpuCost, RecurrentLayersPayForGatesAndTimeSteps) {
  const CpuProcessor four(round_cpu(), 4);
  const auto cost = [&](std::int64_t batch, std::int64_t hidden, bool backward) {
    return cpu_cost(recurrent(batch, hidden, backward), "", four, {CpuData::kWarm});
  };
  // As many operations, with eight times the gates.
  const Kernel narrow = recurrent(4096, 64, false), wide = recurrent(64, 512, false);
  ASSERT_EQ(narrow.flops, wide.flops);
  EXPECT_GT(cost(4096, 64, false).compute, 1.3 * cost(64, 512, false).compute);
  EXPECT_EQ(cost(8, 64, false).rest, four.rates().region * 28.0);
  EXPECT_EQ(cost(8, 64, true).rest, four.rates().region * 56.0);
}

TEST(CpuCost, MoreWorkIsNeverFaster) {
  const CpuProcessor cpu(round_cpu(), 2);
  for (const CpuData data : {CpuData::kWarm, CpuData::kStep, CpuData::kCold}) {
    for (const char* name : {"add", "gelu", "native_batch_norm", "unheard_of"}) {
      Seconds before;
      for (std::int64_t n = 16; n < (1 << 24); n *= 2) {
        if (n == 65536) before = 0_s;  // a second thread begins to help
        const Seconds now = cpu_cost(elements(n), name, cpu, {data}).total();
        EXPECT_GE(now, before) << name << " " << n;
        before = now;
      }
    }
    Seconds before;
    for (std::int64_t k = 8; k < 8192; k *= 2) {
      const Seconds now = cpu_cost(product(256, 256, k), "mm", cpu, {data}).total();
      EXPECT_GE(now, before) << k;
      before = now;
    }
  }
}

TEST(CpuCost, WhereTheDataLies) {
  const CpuProcessor cpu(round_cpu(), 1);
  for (const std::int64_t n : {1000, 50000, 300000, 20000000}) {
    const Seconds warm = cpu_cost(elements(n), "add", cpu, {CpuData::kWarm}).memory;
    const Seconds step = cpu_cost(elements(n), "add", cpu, {CpuData::kStep}).memory;
    const Seconds cold = cpu_cost(elements(n), "add", cpu, {CpuData::kCold}).memory;
    EXPECT_LE(warm, 1.01 * step);  // far beyond the caches they are one
    EXPECT_LE(step, 1.01 * cold);
  }
}

TEST(CpuCost, LargeProductsReachTheRate) {
  const CpuProcessor cpu(round_cpu(), 1);
  const Kernel kernel = product(2048, 2048, 2048);
  const Seconds ideal(kernel.flops.count() / cpu.rates().products);
  const Seconds now = cpu_cost(kernel, "mm", cpu, {CpuData::kWarm}).total();
  EXPECT_GT(now, ideal);
  EXPECT_LT(now, 1.1 * ideal);
  // A single row moves the whole matrix for few FLOPs.
  const CpuCost row = cpu_cost(product(1, 4096, 4096), "mm", cpu, {CpuData::kStep});
  EXPECT_GT(row.memory, row.compute);
}

TEST(CpuCost, AcrossRowsIsSlower) {
  const CpuProcessor cpu(round_cpu(), 1);
  Kernel kernel = elements(20000, KernelClass::kCopy);
  const Seconds along = cpu_cost(kernel, "clone", cpu, {CpuData::kWarm}).total();
  kernel.strided = true;
  EXPECT_GT(cpu_cost(kernel, "clone", cpu, {CpuData::kWarm}).total(), along);
}

TEST(CpuFunction, InPlaceFormsAndUnknownNames) {
  EXPECT_EQ(cpu_use("add_", KernelClass::kElementwise).vectors,
            cpu_use("add", KernelClass::kElementwise).vectors);
  EXPECT_GT(cpu_use("gelu", KernelClass::kElementwise).vectors,
            cpu_use("add", KernelClass::kElementwise).vectors);
  EXPECT_TRUE(has_cpu_function("addcdiv_"));
  EXPECT_FALSE(has_cpu_function("no_such_operator"));
  const CpuProcessor cpu(round_cpu(), 1);
  EXPECT_FALSE(
      cpu_cost(elements(100, KernelClass::kUncosted), "no_such_operator", cpu, {CpuData::kStep})
          .has_rule);
}

TEST(CpuCost, AbsurdShapesStayFinite) {
  const CpuProcessor cpu(round_cpu(), 2);
  Kernel kernel = product(1, 1, 1);
  kernel.flops = Flops(1e300);
  EXPECT_LE(cpu_cost(kernel, "mm", cpu, {CpuData::kStep}).total(), Seconds(2 * 86400));
  kernel = elements(0);
  EXPECT_GE(cpu_cost(kernel, "add", cpu, {CpuData::kStep}).total(), 0_s);
}

}  // namespace
}  // namespace stoker
