#include "cli/arguments/completion.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "cli/verbs/verbs.h"

namespace stoker::cli {
namespace {
namespace fs = std::filesystem;

const KnownNames kKnown{"resnet18 resnet50", "rtx-3090 t4"};

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  char part[4096];
  while (pipe != nullptr && std::fgets(part, sizeof part, pipe.get()) != nullptr) text += part;
  return text;
}

bool has_program(const std::string& name) {
  return !output_of("command -v " + name + " 2>/dev/null").empty();
}

/// The script in a file that goes away.
class ScriptFile {
 public:
  explicit ScriptFile(const std::string& script) {
    std::string name = (fs::temp_directory_path() / "stoker-completion-XXXXXX").string();
    close(mkstemp(name.data()));
    path_ = name;
    std::ofstream(path_) << script;
  }
  ~ScriptFile() { fs::remove(path_); }
  ScriptFile(const ScriptFile&) = delete;
  ScriptFile& operator=(const ScriptFile&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

/// What bash offers for the last of `words`, separated by spaces.
std::string offered(const std::string& words, int at) {
  const ScriptFile script(bash_completion(all_verbs(), kKnown));
  const std::string text = output_of(
      "bash -c 'set -eu; source " + script.path() + "; COMP_WORDS=(" + words +
      "); COMP_CWORD=" + std::to_string(at) + "; _stoker; echo \"${COMPREPLY[*]}\"' 2>&1");
  return text.empty() ? text : text.substr(0, text.size() - 1);
}

TEST(CompletionTest, BashOffersVerbs) {
  EXPECT_EQ(offered("stoker pr", 1), "predict probe");
  EXPECT_EQ(offered("stoker obs", 1), "observation");
  EXPECT_EQ(offered("stoker --v", 1), "--version");
  EXPECT_EQ(offered("stoker he", 1), "help");
  EXPECT_EQ(offered("stoker help wa", 2), "watch");
}

TEST(CompletionTest, BashOffersFlagsOfTheVerbAlone) {
  EXPECT_EQ(offered("stoker plan --max", 2),
            "--max-host-memory --max-seq-length --max-length --max-epochs --max-global-batch");
  EXPECT_EQ(offered("stoker predict m --num-w", 3), "--num-workers");
  EXPECT_EQ(offered("stoker predict m --no-c", 3), "--no-compile --no-clip");
  EXPECT_EQ(offered("stoker gpus --", 2),
            "--help --help-all --color --quiet --memory --instances --json");
  EXPECT_EQ(offered("stoker capture --pre", 2), "--precision");
}

TEST(CompletionTest, BashOffersKnownValues) {
  EXPECT_EQ(offered("stoker plan m --objective e", 4), "epoch energy");
  EXPECT_EQ(offered("stoker predict m --precision amp", 4), "amp-fp16 amp-bf16");
  EXPECT_EQ(offered("stoker completion f", 2), "fish");
  EXPECT_EQ(offered("stoker plan --color a", 3), "auto always");
  EXPECT_EQ(offered("stoker plan m --qui", 3), "--quiet");
  EXPECT_EQ((offered("stoker sweep -", 2) + " ").find(" -q "), std::string::npos);
  EXPECT_EQ(offered("stoker predict m --batch 1", 4), "");
}

TEST(CompletionTest, BashOffersModelsAndGpus) {
  EXPECT_EQ(offered("stoker predict res", 2), "resnet18 resnet50");
  EXPECT_EQ(offered("stoker predict m --gpu rtx", 4), "rtx-3090");
}

TEST(CompletionTest, BashOffersFilesWhereTheyAreTaken) {
  const ScriptFile file("");
  const std::string start = file.path().substr(0, file.path().size() - 3);
  EXPECT_NE(offered("stoker plan m --data " + start, 4).find(file.path()), std::string::npos);
}

TEST(CompletionTest, ZshReadsItsScript) {
  if (!has_program("zsh")) GTEST_SKIP() << "no zsh here";
  const ScriptFile script(zsh_completion(all_verbs(), kKnown));
  EXPECT_EQ(output_of("zsh -n " + script.path() + " 2>&1"), "");
}

TEST(CompletionTest, ZshRegistersASourcedScript) {
  if (!has_program("zsh")) GTEST_SKIP() << "no zsh here";
  const ScriptFile script(zsh_completion(all_verbs(), kKnown));
  EXPECT_EQ(output_of("zsh -f -c 'autoload -Uz compinit; compinit -u -D; source " + script.path() +
                      "; echo $_comps[stoker]' 2>&1"),
            "_stoker\n");
}

TEST(CompletionTest, FishOffersModelsAndGpus) {
  if (!has_program("fish")) GTEST_SKIP() << "no fish here";
  const ScriptFile script(fish_completion(all_verbs(), kKnown));
  const auto offers = [&](const std::string& typed) {
    return output_of("fish --no-config -c 'cd /; source " + script.path() + "; complete -C \"" +
                     typed + "\"' 2>&1");
  };
  EXPECT_EQ(offers("stoker predict resnet5"), "resnet50\n");
  EXPECT_EQ(offers("stoker predict m --gpu rtx-3").find("rtx-3090"), 0U);
}

TEST(CompletionTest, FishReadsItsScript) {
  if (!has_program("fish")) GTEST_SKIP() << "no fish here";
  const ScriptFile script(fish_completion(all_verbs(), kKnown));
  EXPECT_EQ(output_of("fish -n " + script.path() + " 2>&1"), "");
}

TEST(CompletionTest, ZshAndFishNameVerbsFlagsAndValues) {
  const std::string zsh = zsh_completion(all_verbs(), kKnown),
                    fish = fish_completion(all_verbs(), kKnown);
  EXPECT_NE(zsh.find("'--objective[throughput, cost, epoch or energy]:WHAT:(throughput cost epoch "
                     "energy)' \\\n"),
            std::string::npos);
  EXPECT_NE(zsh.find("    'observation:"), std::string::npos);
  EXPECT_NE(fish.find("complete -c stoker -n '__fish_seen_subcommand_from plan' -l objective -x -a "
                      "'throughput cost epoch energy' -d "),
            std::string::npos);
  EXPECT_NE(fish.find("complete -c stoker -n __fish_use_subcommand -f -a observation -d "),
            std::string::npos);
}

}  // namespace
}  // namespace stoker::cli
