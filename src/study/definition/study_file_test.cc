#include "study/definition/study_file.h"

#include <gtest/gtest.h>

#include "study/definition/study_json.h"

namespace stoker::study {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kFull = R"(
name = "vgg"
command = "python train.py --batch {batch} --name 'a b'"
folder = "/data"
repeat = 3
seed = 5
conditions = ["gpus*batch <= 1024"]
exclude = ["batch == 64 and gpus == 4"]
order = "informative"
output = "1M"

[environment]
OMP_NUM_THREADS = 2
NAME = "{model}"

[axes]
gpus = [1, 2, 4]
batch = "64..256x2"
lr = ["1e-3..1e-1", 0.5]
optimizer = ["sgd", "adam"]
momentum = { values = [0.0, 0.9], when = "optimizer == 'sgd'", otherwise = 0 }

[[linked]]
names = ["model", "side"]
rows = [["resnet", 224], ["inception", 299]]

[resources]
cores = 4
gpus = "{gpus}"
memory = "8G"
time = "10min"

[metrics]
accuracy = 'acc: ([0-9.]+)'
loss = { goal = "min", take = "best", needed = false }

[budget]
failures = 5
time = "2h"
gpu_hours = 10
money = 20
price = 2.5

[forecast]
model = "{model}"
gpu = "a100-40gb"
epochs = 2

[slurm]
partition = "gpu"
options = ["--exclusive"]
prologue = "module load cuda"

[kubernetes]
image = "lab/torch"
claim = "nfs"
mount = "/data"
tolerate = ["gpu"]
keep = "2h"
node_selector = { gpu = "{model}" }
)";

Study parsed(const std::string& text) {
  const auto study = parse_study(text, "study.toml");
  EXPECT_TRUE(study.has_value()) << study.error().text();
  return study.value_or(Study{});
}

std::string refused(const std::string& text) {
  const auto study = parse_study(text, "study.toml");
  EXPECT_FALSE(study.has_value());
  return study ? "" : study.error().text();
}

TEST(StudyFile, EveryPartIsRead) {
  const Study s = parsed(kFull);
  EXPECT_EQ(s.command, (Words{"python", "train.py", "--batch", "{batch}", "--name", "a b"}));
  ASSERT_EQ(s.axes.size(), 6u);
  EXPECT_EQ(s.axes[0].names, Words{"gpus"});
  EXPECT_EQ(s.axes[1].rows, (std::vector<Words>{{"64"}, {"128"}, {"256"}}));
  EXPECT_EQ(s.axes[2].rows, (std::vector<Words>{{"0.001"}, {"0.01"}, {"0.1"}, {"0.5"}}));
  EXPECT_EQ(s.axes[4].when, "optimizer == 'sgd'");
  EXPECT_EQ(s.axes[4].otherwise, Words{"0"});
  EXPECT_EQ(s.axes[5].rows, (std::vector<Words>{{"resnet", "224"}, {"inception", "299"}}));
  EXPECT_EQ(s.environment.at("OMP_NUM_THREADS"), "2");
  EXPECT_EQ(s.resources, (Resources{"4", "{gpus}", "8G", "10min", "10s"}));
  EXPECT_EQ(s.metrics[0], (Metric{"accuracy", "acc: ([0-9.]+)"}));
  EXPECT_EQ(s.metrics[1], (Metric{"loss", "", Goal::kLeast, Take::kBest, false}));
  EXPECT_EQ(s.budget, (Budget{5, 7200, 10, 20, 2.5}));
  EXPECT_EQ(s.slurm.partition, "gpu");
  EXPECT_EQ(s.kubernetes.claim, "nfs");
  EXPECT_EQ(s.kubernetes.node_selector.at("gpu"), "{model}");
  EXPECT_EQ(s.kubernetes.keep_seconds, 7200);
  EXPECT_EQ(s.forecast, (std::map<std::string, std::string>{
                            {"model", "{model}"}, {"gpu", "a100-40gb"}, {"epochs", "2"}}));
  EXPECT_EQ(s.order, Order::kInformative);
  EXPECT_EQ(s.repeat, 3);
  EXPECT_EQ(s.seed, 5);
  EXPECT_EQ(s.output_bytes, 1 << 20);
}

TEST(StudyFile, AClaimNeedsItsPlaceInPods) {
  const auto study = parse_study(
      "command = 'x'\n[axes]\na = [1]\n[kubernetes]\nimage = 'i'\nclaim = 'c'\n", "study.toml");
  ASSERT_FALSE(study.has_value());
  EXPECT_NE(study.error().text().find("needs mount"), std::string::npos) << study.error().text();
}

TEST(StudyFile, AStoreKeepsAllOfIt) {
  const Study s = parsed(kFull);
  const auto back = study_from_json(study_json(s), "study.db");
  ASSERT_TRUE(back.has_value()) << back.error().text();
  EXPECT_EQ(*back, s);
  Study other = s;
  other.repeat = 4;
  other.conditions.clear();
  other.axes[1].rows.push_back({"512"});
  other.slurm.partition = "other";
  EXPECT_EQ(differences(s, other),
            (Words{"axis batch: 64, 128, 256 there, 64, 128, 256, 512 asked for",
                   "conditions: gpus*batch <= 1024 there, none asked for",
                   "repeat: 3 there, 4 asked for", "slurm partition: gpu there, other asked for"}));
  EXPECT_EQ(differences(s, s), Words{});
}

TEST(StudyFile, RefusalsNameTheLine) {
  EXPECT_EQ(refused("command = 'x'\n[axes]\nbatch = '8..1'\n"),
            "study.toml:3, [axes] batch: \"8..1\" goes down: put the smaller end first");
  EXPECT_EQ(refused("command = 'x {bacth}'\n[axes]\nbatch = [1]\n"),
            "study.toml, command: \"bacth\" is no axis of this study; did you mean batch?");
  EXPECT_EQ(refused("command = 'x'\n[axes]\nbatch = []\n"),
            "study.toml:3, [axes] batch: has no values; write batch = [32, 64]");
  EXPECT_EQ(refused("[axes]\nbatch = [1]\n"),
            "study.toml:1, command: is missing: what is to be run");
  EXPECT_EQ(refused("comand = 'x'\n[axes]\nbatch = [1]\n"),
            "study.toml:1, comand: is not known here; did you mean command?");
  EXPECT_EQ(refused("command = 'x'\nrepeats = 3\n[axes]\nbatch = [1]\n"),
            "study.toml:2, repeats: is not known here; did you mean repeat?");
  EXPECT_EQ(refused("command = 'x'\n[budget]\nmoney = 3\n[axes]\nb = [1]\n"),
            "study.toml:3, [budget] money: needs price = what a GPU-hour costs");
  EXPECT_EQ(refused("command = 'x'\n[axes]\nb = { values = [1], whn = '1' }\n"),
            "study.toml:3, [axes.b] whn: is not known here; did you mean when?");
}

TEST(StudyFlags, Axes) {
  EXPECT_EQ(parse_axis("batch=32,64")->rows, (std::vector<Words>{{"32"}, {"64"}}));
  const Axis linked = parse_axis("model,side=resnet:224,inception:299").value();
  EXPECT_EQ(linked.names, (Words{"model", "side"}));
  EXPECT_EQ(linked.rows, (std::vector<Words>{{"resnet", "224"}, {"inception", "299"}}));
  // Each place says it in its own spelling.
  EXPECT_EQ(parse_axis("batch=1,1").error().text(),
            "--vary batch=1,1: \"1,1\" has 1 twice; --repeat 2 runs settings again");
  EXPECT_NE(refused("command = 'x'\n[axes]\nbatch = '1,1'\n")
                .find("\"1,1\" has 1 twice; repeat = 2 runs settings again"),
            std::string::npos);
  EXPECT_EQ(parse_axis("batch").error().text(),
            "--vary batch: write NAME=VALUES: --vary batch=32,64,128");
  EXPECT_EQ(parse_axis("batch=").error().text(),
            "--vary batch=: \"\" has an empty value; write 32,64,128 or 0..8");
}

TEST(StudyFlags, Metrics) {
  EXPECT_EQ(parse_metric("accuracy").value(), Metric{"accuracy"});
  EXPECT_EQ(parse_metric("loss:min=loss=([0-9.]+)").value(),
            (Metric{"loss", "loss=([0-9.]+)", Goal::kLeast}));
  EXPECT_EQ(parse_metric("loss:low").error().text(),
            "--metric loss:low: the goal is max or min: --metric loss:min");
}

}  // namespace
}  // namespace stoker::study
