#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "cli/request/allocator_options.h"
#include "cli/request/report_context.h"
#include "scenario/request/allocator.h"
#include "step/step_reader.h"
#include "step/test_step.h"

namespace stoker::cli {
namespace {

/// Variables as they are for the length of a test, and none besides of those that are named.
class Environment : public testing::Test {
 protected:
  void set(const char* name, const char* value) {
    if (const char* before = std::getenv(name); before != nullptr) before_.emplace(name, before);
    else before_.emplace(name, "");
    if (value == nullptr) ::unsetenv(name);
    else ::setenv(name, value, 1);
  }
  void TearDown() override {
    for (const auto& [name, value] : before_) {
      if (value.empty()) ::unsetenv(name.c_str());
      else ::setenv(name.c_str(), value.c_str(), 1);
    }
  }

 private:
  std::map<std::string, std::string> before_;
};

class AllocatorEnvironment : public Environment {
 protected:
  void SetUp() override {
    for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
                             "CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE"})
      set(name, nullptr);
  }
};

TEST_F(AllocatorEnvironment, NothingIsSaid) {
  const AllocatorRequest r = allocator_request({});
  EXPECT_EQ(r.config.text + r.cublas_workspace.text + r.cublaslt_workspace.text, "");
  EXPECT_TRUE(allocator_words(r).empty());
}

/// The flag goes before the variable, PyTorch's newer name before the older, and a refusal names
/// where the words stood.
TEST_F(AllocatorEnvironment, TheFlagGoesBeforeTheVariablesAndTheNewBeforeTheOld) {
  set("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64");
  EXPECT_EQ(allocator_words(allocator_request({})),
            std::vector<std::string>{"PYTORCH_CUDA_ALLOC_CONF max_split_size_mb:64"});
  set("PYTORCH_ALLOC_CONF", "expandable_segments:True");
  EXPECT_EQ(allocator_request({}).config.where, "PYTORCH_ALLOC_CONF");
  EXPECT_TRUE(allocator_of(allocator_request({}))->expandable_segments);
  AllocatorOptions options;
  options.alloc_conf = "max_split_size_mb:128";
  EXPECT_EQ(allocator_request(options).config.where, "{alloc-conf}");
  EXPECT_FALSE(allocator_of(allocator_request(options))->expandable_segments);
  set("PYTORCH_ALLOC_CONF", "");
  EXPECT_EQ(allocator_request({}).config.text, "max_split_size_mb:64")
      << "an empty one says nothing";
  set("PYTORCH_ALLOC_CONF", "nonsense");
  EXPECT_EQ(allocator_of(allocator_request({})).error().where, "PYTORCH_ALLOC_CONF");
}

TEST_F(AllocatorEnvironment, WorkspacesOfTheLibraries) {
  set("CUBLAS_WORKSPACE_CONFIG", ":4096:2:16:8");
  set("CUBLASLT_WORKSPACE_SIZE", "1024");
  Job job;
  ASSERT_TRUE(fill_workspaces(allocator_request({}), job));
  EXPECT_EQ(job.cublas_workspace, kKiB * (4096 * 2 + 16 * 8));
  EXPECT_EQ(job.cublaslt_workspace, kMiB) << "in KiB";
  AllocatorOptions options;
  options.cublas_workspace = "lots";
  EXPECT_EQ(fill_workspaces(allocator_request(options), job).error().where, "{cublas-workspace}");
  set("CUBLASLT_WORKSPACE_SIZE", "lots");
  EXPECT_EQ(fill_workspaces(allocator_request({}), job).error().where, "CUBLASLT_WORKSPACE_SIZE");
}

class ContextEnvironment : public Environment {
 protected:
  void SetUp() override {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) set(name, nullptr);
    facts_.step = &step_;
  }
  Step step_ = parse_step(testing_support::linear_step_json(), "test").value();
  Facts facts_;
};

TEST_F(ContextEnvironment, ChartsAreDrawnInUtf8WhereTheTerminalSaysSo) {
  EXPECT_FALSE(context_of(facts_).unicode);
  set("LANG", "de_DE.UTF-8");
  EXPECT_TRUE(context_of(facts_).unicode);
  set("LC_CTYPE", "C");
  EXPECT_FALSE(context_of(facts_).unicode) << "it goes before LANG";
  set("LC_ALL", "en_US.utf8");
  EXPECT_TRUE(context_of(facts_).unicode) << "and this before both";
  set("LC_ALL", "");
  EXPECT_FALSE(context_of(facts_).unicode) << "an empty one says nothing";
  facts_.step = nullptr;
  set("LC_ALL", "en_US.utf8");
  EXPECT_FALSE(context_of(facts_).unicode) << "nothing is drawn without a model";
}

TEST_F(ContextEnvironment, SentencesNameFlagsInPlaceOfMarks) {
  facts_.rests_on = {"rows of its own ({coefficients})"};
  facts_.assumed = {"batch 32 ({batch})", "workers live on ({no-persistent-workers})"};
  facts_.host_name = "{host}";
  const ReportContext context = context_of(facts_);
  EXPECT_EQ(context.rests_on, std::vector<std::string>{"rows of its own (--coefficients)"});
  EXPECT_EQ(context.assumed,
            (std::vector<std::string>{"batch 32 (--batch)",
                                      "workers live on (--no-persistent-workers)"}));
  EXPECT_EQ(context.host_name, "{host}") << "a name of the user's is no sentence";
}

}  // namespace
}  // namespace stoker::cli
