#include "diagnosis/trace/trace_diagnosis.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

namespace stoker {
namespace {

/// A trace of a loop that is written down event by event; times in microseconds.
class Written {
 public:
  void host(std::string_view category, std::string_view name, double from, double length,
            int correlation = 0, int thread = 1) {
    add(category, name, "77", std::to_string(thread), from, length, correlation);
  }
  void gpu(std::string_view category, std::string_view name, double from, double length,
           int correlation = 0) {
    add(category, name, "0", "7", from, length, correlation);
  }
  /// A launch at `at` of 5 us, and the kernel that it launches.
  void launched(double at, double from, double length, std::string_view kernel = "gemm") {
    ++correlation_;
    host("cuda_runtime", "cudaLaunchKernel", at, 5, correlation_);
    gpu("kernel", kernel, from, length, correlation_);
  }
  int next() { return ++correlation_; }
  /// An operator that autograd counts.
  void counted(std::string_view name, double from, double length, int sequence, int thread = 1) {
    events_ += fmt::format(R"({}{{"ph":"X","cat":"cpu_op","name":"{}","pid":77,"tid":{},)"
                           R"("ts":{},"dur":{},"args":{{"Sequence number":{}}}}})",
                           events_.empty() ? "" : ",", name, thread, from, length, sequence);
  }
  void launched_by(int thread, double at, double from, double length) {
    ++correlation_;
    host("cuda_runtime", "cudaLaunchKernel", at, 5, correlation_, thread);
    gpu("kernel", "gemm", from, length, correlation_);
  }

  [[nodiscard]] TraceDiagnosis diagnosis(std::optional<std::int64_t> device = {}) const {
    TraceTimeline timeline;
    const auto reading = read_trace_events("[" + events_ + "]", "t", timeline);
    EXPECT_TRUE(reading);
    timeline.finish();
    const auto d = diagnose_trace(timeline, device, "t");
    EXPECT_TRUE(d);
    return d.value_or(TraceDiagnosis{});
  }

 private:
  void add(std::string_view category, std::string_view name, std::string_view process,
           std::string_view thread, double from, double length, int correlation) {
    events_ += fmt::format(
        R"({}{{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
        events_.empty() ? "" : ",", category, name, process, thread, from, length,
        correlation > 0 ? fmt::format(R"("correlation":{})", correlation) : std::string());
  }
  std::string events_;
  int correlation_ = 0;
};

constexpr int kSteps = 4;
constexpr double kStep = 10'000;

/// Steps of 10 ms, each with what `body` writes at its beginning.
Written steps(const std::function<void(Written&, double)>& body) {
  Written trace;
  for (int i = 0; i < kSteps; ++i) {
    trace.host("user_annotation", fmt::format("ProfilerStep#{}", i), i * kStep, kStep);
    body(trace, i * kStep);
  }
  return trace;
}

const JobFinding& first(const TraceDiagnosis& d) {
  static const JobFinding none;
  return d.findings.empty() ? none : d.findings.front();
}

TEST(TraceDiagnosis, ALoopThatWaitsForItsLoader) {
  const TraceDiagnosis d = steps([](Written& trace, double at) {
                             trace.host("user_annotation",
                                        "enumerate(DataLoader)#_SingleProcessDataLoaderIter."
                                        "__next__",
                                        at, 4000);
                             trace.launched(at + 4000, at + 4010, 5990);
                           }).diagnosis();
  EXPECT_EQ(d.steps, kSteps);
  EXPECT_NEAR(d.step_s, 0.01, 1e-9);
  EXPECT_NEAR(d.compute, 0.599, 1e-9);
  EXPECT_NEAR(d.idle_of(IdleCause::kLoader), 0.4, 1e-9);
  EXPECT_EQ(first(d).name, "loads_in_main_process");
  EXPECT_EQ(first(d).setting, "num_workers");
  EXPECT_NEAR(first(d).lost, 0.4, 1e-9);
  EXPECT_EQ(d.findings.size(), 1u);
}

TEST(TraceDiagnosis, WaitingForDataBesideABusyGpuIsNoLoss) {
  const TraceDiagnosis d = steps([](Written& trace, double at) {
                             trace.host("user_annotation",
                                        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter."
                                        "__next__",
                                        at, 4000);
                             trace.launched(at + 4000, at + 9000, 10'000);
                           }).diagnosis();
  EXPECT_NEAR(d.loader, 0.4, 0.1);
  // The first kernel alone has nothing before it.
  EXPECT_NEAR(d.idle_of(IdleCause::kLoader), 4000 / 49'000.0, 1e-6);
}

TEST(TraceDiagnosis, ReadingAValueInEachStep) {
  const TraceDiagnosis d =
      steps([](Written& trace, double at) {
        trace.launched(at, at + 8, 6000);
        trace.host("cpu_op", "aten::item", at + 20, 5995);
        trace.host("cpu_op", "aten::_local_scalar_dense", at + 21, 5993);
        const int copy = trace.next();
        trace.host("cuda_runtime", "cudaMemcpyAsync", at + 22, 5990, copy);
        trace.gpu("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", at + 6008, 2, copy);
        trace.host("cuda_runtime", "cudaStreamSynchronize", at + 6012, 1);
      }).diagnosis();
  EXPECT_EQ(first(d).name, "synchronisations");
  EXPECT_NE(first(d).evidence.find("aten::item"), std::string::npos) << first(d).evidence;
  EXPECT_NEAR(first(d).lost, 0.39, 0.02);
}

TEST(TraceDiagnosis, ManySmallKernels) {
  const TraceDiagnosis d = steps([](Written& trace, double at) {
                             trace.host("cpu_op", "aten::mul", at, kStep);
                             for (int i = 0; i < 100; ++i)
                               trace.launched(at + 100 * i, at + 100 * i + 8, 3, "elementwise_k");
                           }).diagnosis();
  EXPECT_EQ(first(d).name, "host_bound_launching");
  EXPECT_GT(first(d).lost, 0.9);
  EXPECT_NEAR(d.compute, 0.03, 1e-3);
}

TEST(TraceDiagnosis, AnOptimizerThatLaunchesOneKernelAParameter) {
  const TraceDiagnosis d =
      steps([](Written& trace, double at) {
        trace.launched(at, at + 8, 5000);
        trace.host("user_annotation", "Optimizer.step#AdamW.step", at + 5010, 4900);
        for (int i = 0; i < 49; ++i) trace.launched(at + 5100 + 100 * i, at + 5107 + 100 * i, 2);
      }).diagnosis();
  EXPECT_EQ(first(d).name, "optimizer_launching");
  EXPECT_EQ(first(d).setting, "fused=True");
  EXPECT_NEAR(first(d).lost, 0.44, 0.05);
}

TEST(TraceDiagnosis, PageableCopiesThatStopTheHost) {
  const TraceDiagnosis d =
      steps([](Written& trace, double at) {
        const int copy = trace.next();
        trace.host("cuda_runtime", "cudaMemcpyAsync", at, 3000, copy);
        trace.gpu("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at + 10, 2980, copy);
        trace.launched(at + 3500, at + 3508, 6492);
      }).diagnosis();
  EXPECT_EQ(first(d).name, "pageable_copies");
  EXPECT_EQ(first(d).setting, "pin_memory=True");
  // 2.98 ms of copies and 0.51 ms until the host has launched again, of 10 ms.
  EXPECT_NEAR(first(d).lost, 0.349, 0.003);
  EXPECT_NEAR(d.copies, 0.298, 1e-6);
}

TEST(TraceDiagnosis, CommunicationThatNothingHides) {
  const TraceDiagnosis d =
      steps([](Written& trace, double at) {
        trace.launched(at, at + 8, 5992);
        trace.launched(at + 10, at + 5000, 5000, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
      }).diagnosis();
  EXPECT_EQ(first(d).name, "communication");
  EXPECT_NEAR(d.communication_all, 0.5, 1e-6);
  EXPECT_NEAR(d.communication, 0.4, 1e-6);
  EXPECT_NEAR(first(d).lost, 0.4, 1e-6);
}

TEST(TraceDiagnosis, WorkThatWaitsForAnotherStream) {
  const TraceDiagnosis d = steps([](Written& trace, double at) {
                             trace.launched(at, at + 8, 5000);
                             trace.launched(at + 20, at + 9000, 1000);
                           }).diagnosis();
  EXPECT_EQ(first(d).name, "dependencies");
  EXPECT_NEAR(first(d).lost, 0.399, 0.005);
}

TEST(TraceDiagnosis, PythonIsNamedByTheScriptsAnnotation) {
  const TraceDiagnosis d = steps([](Written& trace, double at) {
                             trace.launched(at, at + 8, 5992);
                             trace.host("user_annotation", "count metrics", at + 6000, 3990);
                           }).diagnosis();
  EXPECT_EQ(first(d).name, "python_between_operators");
  EXPECT_NE(first(d).evidence.find("\"count metrics\""), std::string::npos);
}

TEST(TraceDiagnosis, MemoryCallsInTheLoop) {
  const TraceDiagnosis d = steps([](Written& trace, double at) {
                             trace.launched(at, at + 8, 5992);
                             trace.host("cuda_runtime", "cudaFree", at + 6000, 2000);
                             trace.host("cuda_runtime", "cudaMalloc", at + 8000, 1990);
                           }).diagnosis();
  EXPECT_EQ(first(d).name, "memory_calls");
  EXPECT_NEAR(first(d).lost, 0.399, 1e-3);
}

TEST(TraceDiagnosis, ABusyGpuIsToldWhatItsKernelsAre) {
  const TraceDiagnosis d = steps([](Written& trace, double at) {
                             trace.launched(at, at + 8, 7000, "volta_sgemm_128x64_nn");
                             trace.launched(at + 10, at + 7008, 2992, "cudnn::nchwToNhwcKernel");
                           }).diagnosis();
  ASSERT_EQ(d.findings.size(), 2u);
  EXPECT_EQ(d.findings[0].name, "fp32_kernels");
  EXPECT_NEAR(d.findings[0].lost, 0.7, 1e-3);
  EXPECT_EQ(d.findings[1].name, "layout_changes");
  ASSERT_EQ(d.largest.size(), 2u);
  EXPECT_EQ(d.largest[0].name, "volta_sgemm_128x64_nn");
  EXPECT_EQ(d.largest[0].count, kSteps);
}

TEST(TraceDiagnosis, AFirstStepThatTheProfilerBeginsInIsLeftOut) {
  Written trace;
  trace.host("user_annotation", "ProfilerStep#0", 0, 100'000);
  trace.launched(99'000, 99'010, 900);
  for (int i = 1; i < 5; ++i) {
    const double at = 90'000 + i * kStep;
    trace.host("user_annotation", fmt::format("ProfilerStep#{}", i), at, kStep);
    trace.launched(at, at, kStep);
  }
  const TraceDiagnosis d = trace.diagnosis();
  EXPECT_EQ(d.steps, 4);
  EXPECT_NEAR(d.compute, 1, 1e-9);
  ASSERT_FALSE(d.notes.empty());
  EXPECT_NE(d.notes[0].find("first step"), std::string::npos);
  EXPECT_TRUE(d.findings.empty()) << first(d).name;
}

TEST(TraceDiagnosis, WithoutAGpuTheLoopIsToldOf) {
  const TraceDiagnosis d = steps([](Written& trace, double at) {
                             trace.host("user_annotation",
                                        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter."
                                        "__next__",
                                        at, 3000);
                             trace.host("cpu_op", "aten::linear", at + 3000, 6000);
                             trace.host("cpu_op", "aten::addmm", at + 3500, 5000);
                           }).diagnosis();
  EXPECT_FALSE(d.device);
  EXPECT_NEAR(d.loader, 0.3, 1e-9);
  EXPECT_NEAR(d.compute, 0.6, 1e-9);
  EXPECT_EQ(first(d).name, "waits_for_data");
  ASSERT_EQ(d.largest.size(), 2u);
  EXPECT_EQ(d.largest[0].name, "aten::addmm");
  EXPECT_NEAR(d.largest[0].share, 0.5, 1e-9);
  EXPECT_NEAR(d.largest[1].share, 0.1, 1e-9);  // its own time alone
}

TEST(TraceDiagnosis, GarbageCollectionIsToldByItsOwnEvents) {
  for (const std::string_view name : {"Python GC", "<built-in function collect>"}) {
    const TraceDiagnosis d = steps([&](Written& trace, double at) {
                               trace.launched(at, at + 8, 5992);
                               trace.host("python_function", name, at + 6000, 3500);
                             }).diagnosis();
    EXPECT_EQ(first(d).name, "garbage_collection");
    EXPECT_NEAR(d.idle_of(IdleCause::kCollecting), 0.35, 1e-9);
    EXPECT_NE(d.verdict.find("Python's garbage collection"), std::string::npos) << d.verdict;
  }
}

TEST(TraceDiagnosis, CheckpointsOfOtherLibrariesAreSavingToo) {
  for (const std::string_view name :
       {"torch/serialization.py(944): save", "safetensors/torch.py(9): save_file",
        "transformers/trainer.py(3): _save_checkpoint",
        "torch/distributed/checkpoint/state_dict_saver.py(60): save"}) {
    const TraceDiagnosis d = steps([&](Written& trace, double at) {
                               trace.launched(at, at + 8, 5992);
                               trace.host("python_function", name, at + 6000, 3000);
                             }).diagnosis();
    EXPECT_NEAR(d.idle_of(IdleCause::kSaving), 0.3, 1e-9) << name;
  }
}

TEST(TraceDiagnosis, GapsWithinACudaGraphAreItsOwn) {
  const TraceDiagnosis d = steps([](Written& trace, double at) {
                             const int graph = trace.next();
                             trace.host("cuda_runtime", "cudaGraphLaunch", at, 10, graph);
                             for (int i = 0; i < 10; ++i)
                               trace.gpu("kernel", "k", at + 20 + 900 * i, 600, graph);
                             trace.launched(at + 8720, at + 8730, 1270);
                           }).diagnosis();
  // Nine gaps of 300 us a step.
  EXPECT_NEAR(d.idle_of(IdleCause::kGraph), 0.27, 1e-9);
  EXPECT_EQ(first(d).name, "graph_gaps");
}

TEST(TraceDiagnosis, OperatorsAndModulesHaveTheGpusTimeThatTheyLaunch) {
  const TraceDiagnosis d = steps([](Written& trace, double at) {
                             const int number = static_cast<int>(at);
                             trace.host("python_function", "nn.Module: Net_0", at, 4000);
                             trace.host("python_function", "nn.Module: Linear_1", at + 10, 1000);
                             trace.host("cpu_op", "aten::linear", at + 20, 900);
                             trace.counted("aten::addmm", at + 30, 800, number);
                             trace.launched(at + 40, at + 1000, 2000);
                             trace.host("python_function", "nn.Module: Linear_2", at + 1100, 1000);
                             trace.counted("aten::addmm", at + 1110, 800, number + 1);
                             trace.launched(at + 1120, at + 3000, 1000);
                             // The backward pass of Linear_1, on a thread of autograd.
                             trace.counted("autograd::engine::evaluate_function: AddmmBackward0",
                                           at + 4100, 500, number, 2);
                             trace.host("cpu_op", "aten::mm", at + 4200, 300, 0, 2);
                             trace.launched_by(2, at + 4210, at + 4300, 3000);
                             // No operator, no module, and one that nobody launched.
                             trace.launched(at + 5000, at + 7300, 400);
                             trace.gpu("kernel", "orphan", at + 7700, 100);
                           }).diagnosis();
  ASSERT_EQ(d.operators.size(), 3u);
  const double window = d.seconds * 1e6 / kSteps;
  EXPECT_EQ(d.operators[0].name, "aten::addmm");
  EXPECT_NEAR(d.operators[0].share, 3000 / window, 1e-9);
  EXPECT_EQ(d.operators[1].name, "aten::mm");
  EXPECT_NEAR(d.operators[1].backward, 3000 / window, 1e-9);
  EXPECT_EQ(d.operators[2].name, "outside of operators");
  ASSERT_EQ(d.modules.size(), 1u);
  EXPECT_EQ(d.modules[0].name, "Linear");
  EXPECT_EQ(d.modules[0].modules, 2);
  EXPECT_EQ(d.modules[0].count, 3 * kSteps);
  EXPECT_NEAR(d.modules[0].share, 6000 / window, 1e-9);
  EXPECT_NEAR(d.modules[0].backward, 3000 / window, 1e-9);
  EXPECT_EQ(d.orphan_count, kSteps);
  EXPECT_NEAR(d.orphans, 100.0 / 6500, 1e-9);
}

TEST(TraceDiagnosis, TheProfilersOwnTimeIsSaid) {
  const TraceDiagnosis d = steps([](Written& trace, double at) {
                             trace.launched(at, at + 8, 9992);
                             trace.host("overhead", "Activity Buffer Request", at + 100, 400);
                           }).diagnosis();
  EXPECT_NEAR(d.overhead, 0.04, 1e-6);
  EXPECT_NE(d.notes.back().find("the profiler itself"), std::string::npos) << d.notes.back();
}

TEST(TraceDiagnosis, AGpuThatDidNothingIsRefused) {
  TraceTimeline timeline;
  ASSERT_TRUE(read_trace_events(
      R"([{"ph":"X","cat":"kernel","name":"k","pid":1,"ts":1,"dur":1,"args":{"device":1}}])", "t",
      timeline));
  timeline.finish();
  EXPECT_TRUE(diagnose_trace(timeline, 1, "t"));
  const auto refused = diagnose_trace(timeline, 0, "t");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("no work of GPU 0 is in it; GPU 1 has some"),
            std::string::npos);
}

/// Shares that were computed from the shared traces by plain unions of intervals, in milliseconds
/// (README of data/traces).
struct Known {
  const char* file;
  std::int64_t steps;
  double busy_ms, compute_ms, exposed_ms;
};

TEST(TraceDiagnosis, RealTracesSayWhatTheirIntervalsSay) {
  const char* shared = std::getenv("STOKER_SHARED");
  const std::filesystem::path folder =
      (shared ? std::filesystem::path(shared)
              : std::filesystem::path(STOKER_SOURCE_DIR).parent_path() / "shared") /
      "data/traces";
  for (const Known& known :
       {Known{"kineto_resnet50_v100_workers0.pt.trace.json.gz", 6, 603.558, 591.532, 0},
        Known{"hta_a100_ddp2_rank0.json.gz", 3, 157.500, 115.656, 39.559},
        Known{"hta_a100_8gpu_rank3.json.gz", 6, 388.587, 281.336, 87.921},
        Known{"tracelens_mi300x_resnet_ddp8_rank0.json.gz", 3, 84.002, 25.739, 55.625}}) {
    if (!std::filesystem::exists(folder / known.file)) GTEST_SKIP() << known.file;
    TraceTimeline timeline;
    ASSERT_TRUE(read_trace_file(folder / known.file, timeline));
    timeline.finish();
    const auto d = diagnose_trace(timeline, {}, known.file);
    ASSERT_TRUE(d) << d.error().text();
    EXPECT_EQ(d->steps, known.steps) << known.file;
    const double ms = d->seconds * 1e3;
    EXPECT_NEAR((1 - d->idle) * ms, known.busy_ms, 0.01 * known.busy_ms) << known.file;
    EXPECT_NEAR(d->communication * ms, known.exposed_ms, 0.01 * known.busy_ms) << known.file;
    // Memory that is set counts as computing.
    EXPECT_NEAR(d->compute * ms, known.compute_ms, 0.03 * known.compute_ms) << known.file;
    double idle = 0;
    for (const double part : d->idle_by) idle += part;
    EXPECT_NEAR(idle, d->idle, 1e-9) << known.file;
  }
}

}  // namespace
}  // namespace stoker
