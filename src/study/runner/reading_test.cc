#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "study/runner/bounded_output.h"
#include "study/runner/failure_cause.h"
#include "study/runner/metric_reader.h"
#include "study/trial/test_folder.h"

namespace stoker::study {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST(BoundedOutput, AShortOutputIsKeptWhole) {
  const TestFolder folder;
  BoundedOutput output(folder.path / "o", 1000);
  EXPECT_FALSE(std::filesystem::exists(folder.path / "o"));
  output.write("hello ");
  output.write(std::string("wo\0rld\n", 7));
  output.finish();
  EXPECT_EQ(content(folder.path / "o"), std::string("hello wo\0rld\n", 13));
  EXPECT_EQ(output.left_out(), 0);
}

TEST(BoundedOutput, OfALongOneBeginningAndEndAreKept) {
  const TestFolder folder;
  BoundedOutput output(folder.path / "o", 1 << 20);
  std::string all;
  for (int i = 0; i < 400'000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    all += line;
    output.write(line);
  }
  output.finish();
  const std::string kept = content(folder.path / "o");
  EXPECT_LT(kept.size(), (1u << 20) + 100);
  EXPECT_EQ(kept.substr(0, 900'000), all.substr(0, 900'000));
  EXPECT_TRUE(kept.ends_with("line 399998\nline 399999\n"));
  EXPECT_NE(kept.find("[stoker: " + std::to_string(output.left_out()) + " bytes left out here]"),
            std::string::npos);
  EXPECT_EQ(output.left_out() + (1 << 20), static_cast<std::int64_t>(all.size()));
}

TEST(BoundedOutput, AFullDiskCostsOutputAlone) {
  BoundedOutput output("/dev/full", 1 << 20);
  output.write("hello");
  output.finish();
  EXPECT_EQ(output.lost(), 5);
  EXPECT_EQ(output.tail(), "hello");
}

TEST(LineSplitter, ProgressBarsAreLines) {
  LineSplitter splitter;
  std::vector<std::string> lines;
  const auto sink = [&](std::string_view line) { lines.emplace_back(line); };
  splitter.write("10%\r20", sink);
  splitter.write("%\r\nnext\n\nlast", sink);
  splitter.finish(sink);
  EXPECT_EQ(lines, (std::vector<std::string>{"10%", "20%", "next", "last"}));
}

MetricReader reader(std::vector<Metric> metrics) { return MetricReader(std::move(metrics)); }

TEST(Metrics, PatternsFindTheLastValue) {
  auto r = reader({{"accuracy", "acc(?:uracy)?: ([0-9.a-z]+)"}, {"loss", "loss=([0-9.]+)"}});
  r.output("epoch 1 loss=2.5 acc: 0.25", 1);
  r.output("epoch 2 loss=1.5 accuracy: 0.50", 2);
  r.output("nothing here", 3);
  EXPECT_EQ(r.values(), (std::map<std::string, double>{{"accuracy", 0.5}, {"loss", 1.5}}));
  EXPECT_FALSE(r.problem().has_value());
  EXPECT_EQ(r.points().size(), 4u);
  EXPECT_EQ(r.points()[1].seconds, 2);
}

TEST(Metrics, RulesTakeWhatTheySay) {
  for (const auto& [take, expected] : {std::pair{Take::kLast, 3.0},
                                       {Take::kFirst, 2.0},
                                       {Take::kMean, 2.0},
                                       {Take::kLargest, 3.0},
                                       {Take::kSmallest, 1.0},
                                       {Take::kBest, 1.0}}) {
    auto r = reader({{"loss", "", Goal::kUnknown, take}});
    for (const char* v : {"2", "1", "3"}) r.report("{\"loss\": " + std::string(v) + "}", 0);
    EXPECT_EQ(r.values().at("loss"), expected);
  }
}

TEST(Metrics, ReportsHaveStepsAndTimes) {
  auto r = reader({{"loss"}});
  r.report(R"({"monotonic": 105.5, "step": 10, "loss": 0.5, "lr": 0.1, "epoch": 3})", 100);
  r.report(R"({"monotonic": 106, "loss": "nan"})", 100);
  r.report("not json", 100);
  ASSERT_EQ(r.points().size(), 2u);
  EXPECT_EQ(r.points()[0].step, 10);
  EXPECT_EQ(r.points()[0].seconds, 5.5);
  EXPECT_EQ(r.values(), (std::map<std::string, double>{{"lr", 0.1}}));
  EXPECT_EQ(r.problem()->cause, "metric_not_finite");
  EXPECT_EQ(r.problem()->reason, "loss is nan");
}

TEST(Metrics, WhatIsMissingIsNamed) {
  auto absent = reader({{"accuracy", "acc: ([0-9.]+)"}});
  absent.output("acc unknown", 1);
  EXPECT_EQ(absent.problem()->reason,
            "accuracy never came: no line of the output matches \"acc: ([0-9.]+)\"");
  auto text = reader({{"accuracy", "acc: (\\S+)"}});
  text.output("acc: good\x1b[31m", 1);
  EXPECT_EQ(text.problem()->cause, "metric_not_a_number");
  EXPECT_EQ(text.problem()->reason, "accuracy is \"good?[31m\", which is no number");
  auto optional = reader({{"accuracy", "", Goal::kMost, Take::kLast, false}});
  EXPECT_FALSE(optional.problem().has_value());
}

TEST(Metrics, ALongSeriesIsThinnedEvenly) {
  auto r = reader({{"loss"}});
  for (int i = 0; i < 10'000; ++i)
    r.report("{\"step\": " + std::to_string(i) + ", \"loss\": " + std::to_string(i) + "}", 0);
  const auto points = r.points();
  EXPECT_LE(points.size(), kMostPoints);
  EXPECT_GE(points.size(), kMostPoints / 4);
  const double gap = *points[1].step - *points[0].step;
  for (std::size_t i = 1; i < points.size(); ++i)
    EXPECT_EQ(*points[i].step - *points[i - 1].step, gap);
  EXPECT_EQ(r.values().at("loss"), 9999);
}

TEST(Metrics, ThroughputLeavesOutTheWarmUp) {
  std::vector<std::pair<double, double>> samples{{10, 64}, {20, 64}};  // one slow step
  for (int i = 1; i <= 10; ++i) samples.emplace_back(20 + i, 64);
  EXPECT_EQ(steady_rate(samples), 64);
  EXPECT_EQ(steady_rate({{1, 64}}), std::nullopt);
  EXPECT_EQ(steady_rate({{1, 64}, {3, 64}}), 32);
}

TEST(Cause, ADiskWithoutRoomIsNamed) {
  const auto line =
      disk_full_in("step 30\nOSError: [Errno 28] No space left on device: 'last.pt'\n");
  ASSERT_TRUE(line);
  EXPECT_EQ(*line, "OSError: [Errno 28] No space left on device: 'last.pt'");
  EXPECT_TRUE(disk_full_in("RuntimeError: PytorchStreamWriter failed writing file data/0"));
  EXPECT_FALSE(disk_full_in("RuntimeError: no such device"));
}

TEST(Cause, PyTorchsNumbersAreRead) {
  const auto now = out_of_memory_in(
      "Traceback (most recent call last):\n  File \"train.py\", line 3\n"
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
      "capacity of 15.77 GiB of which 1.50 GiB is free. Process 1 has 14.27 GiB memory in use. Of "
      "the allocated memory 13.50 GiB is allocated by PyTorch, and 256.00 MiB is reserved by "
      "PyTorch but unallocated.\n");
  ASSERT_TRUE(now.has_value());
  EXPECT_EQ(now->cause, "cuda_out_of_memory");
  EXPECT_EQ(now->figures.at("gpu_asked_bytes"), 2.0 * (1 << 30));
  EXPECT_EQ(now->figures.at("gpu_free_bytes"), 1.5 * (1 << 30));
  EXPECT_EQ(now->figures.at("gpu_allocated_bytes"), 13.5 * (1 << 30));
  EXPECT_EQ(now->figures.at("gpu_reserved_unallocated_bytes"), 256.0 * (1 << 20));
  const auto old = out_of_memory_in(
      "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 8.00 GiB total "
      "capacity; 6.00 GiB already allocated; 1.00 GiB free; 6.50 GiB reserved in total)\n");
  EXPECT_EQ(old->figures.at("gpu_total_bytes"), 8.0 * (1 << 30));
  EXPECT_EQ(old->figures.at("gpu_free_bytes"), 1.0 * (1 << 30));
}

TEST(Cause, OtherFrameworksAreKnown) {
  EXPECT_EQ(out_of_memory_in("MemoryError\n")->cause, "host_out_of_memory");
  EXPECT_EQ(out_of_memory_in("RuntimeError: [enforce fail at alloc_cpu.cpp:114] err == 0. "
                             "DefaultCPUAllocator: can't allocate memory: you tried to allocate "
                             "1099511627776 bytes. Error code 12\n")
                ->cause,
            "host_out_of_memory");
  EXPECT_FALSE(out_of_memory_in("all is well\n").has_value());
}

TEST(Cause, TheErrorLineIsPythons) {
  EXPECT_EQ(error_line("Traceback\n  x\nValueError: bad shape\n[rank0]: cleanup\n\n"),
            "ValueError: bad shape");
  EXPECT_EQ(error_line("one\ntwo\n"), "two");
  EXPECT_EQ(last_lines("a\nb\nc\n\x1b[31md\n", 2), "c\n [31md");
  EXPECT_EQ(last_lines("a", 5), "a");
  EXPECT_EQ(last_lines("", 5), "");
  EXPECT_EQ(signal_words(9), "SIGKILL (9)");
}

}  // namespace
}  // namespace stoker::study
