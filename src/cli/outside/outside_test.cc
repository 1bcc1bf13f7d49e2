#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/arguments/screen_words.h"
#include "cli/outside/launched.h"
#include "cli/outside/live_screen.h"
#include "cli/outside/measuring.h"
#include "cli/outside/python.h"
#include "cli/outside/scenario_tools.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

int ended_with(const Words& command) {
  auto launched = Launched::start(command, CommandOutput::kInherited);
  EXPECT_TRUE(launched) << launched.error().text();
  return launched ? launched->wait() : -1;
}

TEST(Launched, ExitCodesAreThoseOfAShell) {
  EXPECT_EQ(ended_with({"true"}), 0);
  EXPECT_EQ(ended_with({"sh", "-c", "exit 7"}), 7);
  EXPECT_EQ(ended_with({"sh", "-c", "kill -TERM $$"}), 128 + SIGTERM);
  EXPECT_EQ(ended_with({"sh", "-c", "kill -KILL $$"}), 128 + SIGKILL);
}

TEST(Launched, WhatCannotBeStartedSaysWhy) {
  const auto launched =
      Launched::start({"no-such-command-of-this-test"}, CommandOutput::kInherited);
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().text(),
            "no-such-command-of-this-test: cannot be started: No such file or directory");
  EXPECT_EQ(Launched::start({"/"}, CommandOutput::kInherited).error().text(),
            "/: cannot be started: Permission denied");
}

TEST(Launched, EndedDoesNotWait) {
  auto launched = Launched::start({"sleep", "30"}, CommandOutput::kInherited);
  ASSERT_TRUE(launched);
  EXPECT_FALSE(launched->ended());
  ::kill(launched->pid(), SIGKILL);
  EXPECT_EQ(launched->wait(), 128 + SIGKILL);
  EXPECT_TRUE(launched->ended());
  EXPECT_EQ(launched->wait(), 128 + SIGKILL) << "it is told again";
}

/// What a screen of several lines sends to a terminal.
class Drawn {
 public:
  Drawn() : file_(std::tmpfile()), screen_(file_) {}
  ~Drawn() { std::fclose(file_); }
  Drawn(const Drawn&) = delete;
  Drawn& operator=(const Drawn&) = delete;
  std::string draw(const Words& lines) {
    const long before = std::ftell(file_);
    screen_.draw(lines);
    std::string text(static_cast<std::size_t>(std::ftell(file_) - before), '\0');
    std::fseek(file_, before, SEEK_SET);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file_), text.size());
    std::fseek(file_, 0, SEEK_END);
    return text;
  }

 private:
  std::FILE* file_;
  LiveScreen screen_;
};

TEST(LiveScreen, LinesAreDrawnOverThoseBefore) {
  Drawn screen;
  EXPECT_EQ(screen.draw({"one", "two"}), "\rone\x1b[K\n\rtwo\x1b[K\n\x1b[J");
  EXPECT_EQ(screen.draw({"three"}), "\x1b[2A\rthree\x1b[K\n\x1b[J") << "what is below goes";
  EXPECT_EQ(screen.draw({"a\x1b[2Jb"}), "\x1b[1A\ra?[2Jb\x1b[K\n\x1b[J") << "names cannot steer it";
}

TEST(TerminalSize, WhatIsNoTerminalHasTheUsualSize) {
  std::FILE* const file = std::tmpfile();
  EXPECT_EQ(terminal_size(file).columns, TerminalSize{}.columns);
  EXPECT_GE(terminal_size(file).columns, 80U);
  EXPECT_FALSE(is_terminal(file));
  std::fclose(file);
}

TEST(ScreenWords, ColourAndQuietAreTakenOutOfAVerbsWords) {
  const auto taken = [](const Words& words) { return take_screen_words("predict", words).value(); };
  EXPECT_EQ(taken({"m", "--color", "always", "--gpu", "t4"}).colour, Colour::kAlways);
  EXPECT_EQ(taken({"m", "--color", "always", "--gpu", "t4"}).words, (Words{"m", "--gpu", "t4"}));
  EXPECT_EQ(taken({"--colour=never"}).colour, Colour::kNever);
  EXPECT_EQ(taken({"--color=auto"}).colour, Colour::kAuto);
  EXPECT_TRUE(taken({"-q"}).quiet && taken({"--quiet"}).quiet);
  const ScreenWords behind = taken({"m", "--", "-q", "--color"});
  EXPECT_FALSE(behind.quiet) << "the words of the user's command";
  EXPECT_EQ(behind.words, (Words{"m", "--", "-q", "--color"}));
  EXPECT_FALSE(take_screen_words("sweep", {"--quiet"})->quiet) << "it has one of its own";
  EXPECT_EQ(take_screen_words("predict", {"--color", "red"}).error().text(),
            "--color: takes auto, always or never, not \"red\"");
  EXPECT_EQ(take_screen_words("predict", {"--color"}).error().text(),
            "--color: takes auto, always or never");
  EXPECT_EQ(take_screen_words("predict", {"--color", "--", "always"}).error().text(),
            "--color: takes auto, always or never");
}

CaptureOrder order_of(const std::string& spec) {
  CaptureOrder order;
  order.spec = spec;
  order.into = "out.step.gz";
  return order;
}

/// An interpreter that writes down what it is asked, and ends as it is told.
class FakePython : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "stoker-python-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    exits(0);
    ::setenv("STOKER_PYTHON", program().c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("STOKER_PYTHON");
    fs::remove_all(folder_);
  }
  [[nodiscard]] std::string program() const { return (folder_ / "python").string(); }
  void exits(int code) {
    std::ofstream(folder_ / "python") << "#!/bin/sh\nshift 2\nfor word; do echo \"$word\"; done > "
                                      << (folder_ / "words").string() << "\necho $STOKER_BINARY > "
                                      << (folder_ / "binary").string() << "\nexit " << code << "\n";
    fs::permissions(folder_ / "python", fs::perms::owner_all);
  }
  [[nodiscard]] std::string read(const char* file) const {
    std::stringstream text;
    text << std::ifstream(folder_ / file).rdbuf();
    return text.str();
  }
  /// The words that a capture is run with.
  std::string captured(const CaptureOrder& order, const ScriptRun& script = {}) {
    const Status status = scenario_tools(script).capture(order);
    EXPECT_TRUE(status) << status.error().text();
    std::string words = read("words");
    std::replace(words.begin(), words.end(), '\n', ' ');
    return words;
  }

  fs::path folder_;
};

TEST_F(FakePython, IsGivenTheOrderOfACapture) {
  CaptureOrder order = order_of("torchvision:resnet18");
  EXPECT_EQ(captured(order),
            "capture torchvision:resnet18 -o out.step.gz --precision fp32 --sources ");
  order.precision = Precision::kTf32;
  EXPECT_NE(captured(order).find(" --precision fp32 "), std::string::npos)
      << "TF32 is a setting of products in a capture of FP32";
  order.precision = Precision::kAmpBf16;
  order.device = ModelDevice::kCpu;
  order.mode = "inference";
  order.compile = true;
  order.assumptions = {"net.py:3=true", "net.py:9=2"};
  order.adapters = {"r=8", true};
  EXPECT_EQ(
      captured(order),
      "capture torchvision:resnet18 -o out.step.gz --precision amp-bf16 --sources --device cpu "
      "--compile --mode inference --assume net.py:3=true --assume net.py:9=2 --lora=r=8 "
      "--qlora ");
  EXPECT_EQ(read("binary"), fs::read_symlink("/proc/self/exe").string() + "\n")
      << "what Python runs as the binary is this one";
}

TEST_F(FakePython, AScriptIsRunWithinItsLimits) {
  const fs::path script = folder_ / "train.py";
  std::ofstream(script) << "";
  CaptureOrder order = order_of(script.string());
  order.script = Words{"--", "--epochs", "1"};
  EXPECT_EQ(captured(order), "capture " + script.string() + " -o out.step.gz -- --epochs 1 ");
  const ScriptRun run{.time_limit = "5min",
                      .max_host_memory = "8G",
                      .fake_data = "images",
                      .allow_network = true,
                      .compile = false};
  EXPECT_EQ(captured(order, run),
            "capture " + script.string() +
                " -o out.step.gz --fake-data=images --allow-network --no-compile --time-limit=5min "
                "--max-host-memory=8G -- --epochs 1 ");
}

TEST_F(FakePython, WhatTheChildHasExplainedIsNotExplainedAgain) {
  exits(3);
  const Status status = scenario_tools({}).capture(order_of("timm:x"));
  ASSERT_FALSE(status);
  EXPECT_TRUE(is_already_explained(status.error()));
  EXPECT_EQ(run_python_stoker({"capture"}, true).value(), 3);
}

TEST_F(FakePython, AFileThatIsNotThereIsToldBeforePythonStarts) {
  std::ofstream(folder_ / "model.py") << "";
  const std::string typed = (folder_ / "modle.py").string();
  EXPECT_EQ(
      scenario_tools({}).capture(order_of(typed + ":build")).error().text(),
      "there is no file " + typed + "; did you mean " + (folder_ / "model.py").string() + "?");
  EXPECT_EQ(scenario_tools({}).capture(order_of("/no/such/a.py")).error().text(),
            "there is no file /no/such/a.py; check the path");
  EXPECT_FALSE(fs::exists(folder_ / "words"));
}

TEST_F(FakePython, AMissingInterpreterIsNamedWithTheCure) {
  ::setenv("STOKER_PYTHON", "no-such-python-of-this-test", 1);
  EXPECT_EQ(run_python_stoker({"capture"}, true).error().text(),
            "this verb needs Python with PyTorch, and \"no-such-python-of-this-test\" could not be "
            "started (No such file or directory); set STOKER_PYTHON to your interpreter");
  for (const char* verb : {"vocab", "observation"})
    EXPECT_EQ(
        run_python_stoker({verb}, true).error().text(),
        "this verb needs Python, and \"no-such-python-of-this-test\" could not be started (No "
        "such file or directory); set STOKER_PYTHON to your interpreter");
}

/// Captures are remembered under what decides them: another interpreter, search path or package.
TEST_F(FakePython, ItsIdentityIsItsPathItsSearchPathAndThePackage) {
  ::unsetenv("PYTHONPATH");
  const std::string plain = python_identity();
  EXPECT_TRUE(plain.starts_with(program() + "||")) << plain;
  ::setenv("PYTHONPATH", "/elsewhere", 1);
  EXPECT_TRUE(python_identity().starts_with(program() + "|/elsewhere|"));
  ::unsetenv("PYTHONPATH");
  EXPECT_EQ(python_identity(), plain);
  EXPECT_EQ(scenario_tools({}).interpreter, plain);
  ScriptRun run;
  run.time_limit = "5min";
  EXPECT_EQ(scenario_tools(run).interpreter, plain) << "a limit decides nothing";
  run.fake_data = "images";
  run.compile = true;
  EXPECT_EQ(scenario_tools(run).interpreter, plain + "|--fake-data=images|--compile")
      << "what decides what a script's capture holds";
}

TEST(UnnamedRows, AreWrittenToByTheirPathAndLeaveNothing) {
  UnnamedRows unnamed;
  EXPECT_EQ(rows_path("rows.json", "--rows", unnamed).value(), "rows.json");
  const fs::path path = rows_path("", "--rows", unnamed).value();
  EXPECT_TRUE(path.string().starts_with("/dev/fd/"));
  std::ofstream(path) << "[1]";
  std::string text;
  std::getline(std::ifstream(path) >> std::ws, text);
  EXPECT_EQ(text, "[1]");
  ::setenv("TMPDIR", "/no/such/folder", 1);
  UnnamedRows none;
  EXPECT_EQ(rows_path("", "--rows", none).error().text(),
            "cannot make a temporary file; give --rows ROWS.json, or mend TMPDIR");
  ::unsetenv("TMPDIR");
}

}  // namespace
}  // namespace stoker::cli
