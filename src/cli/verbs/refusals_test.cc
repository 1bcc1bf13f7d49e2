#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "cli/verbs/verbs.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

struct Refused {
  const char* words;
  int code;  ///< 2: it cannot be meant, 3: a value or a file cannot be used
  const char* says;
};

/// Runs in a folder that holds a file of each kind that verbs read, none of them sound.
class Refusal : public testing::TestWithParam<Refused> {
 protected:
  static void SetUpTestSuite() {
    std::string name = (fs::temp_directory_path() / "stoker-refusals-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    before_ = fs::current_path();
    fs::current_path(folder_);
    std::ofstream("bad.pickle") << std::string("\x80\x02}q\0.", 6);
    std::ofstream("empty.json") << "[]";
    std::ofstream("odd.bin") << "x";
    std::ofstream("rows.csv") << "a,b\n1,2\n";
  }
  static void TearDownTestSuite() {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }

  static inline fs::path folder_, before_;
};

/// One sentence says what is wrong, where, and the cure; nothing is answered and nothing is made.
TEST_P(Refusal, SaysWhatIsWrongAndTheCure) {
  const auto files = [] {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  };
  const auto before = files();
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = run_command_line(all_verbs(), split(GetParam().words, ' '));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "stoker: " + std::string(GetParam().says) + "\n");
  EXPECT_EQ(code, GetParam().code);
  EXPECT_EQ(files(), before);
}

INSTANTIATE_TEST_SUITE_P(
    Every, Refusal,
    testing::Values(
        Refused{"predict cnn_mnist --gpu t4 --host cores=0", 2,
                "--host cores: 0 cores cannot be; possible are 0.01 cores to 65536 cores"},
        Refused{"predict cnn_mnist --gpu t4 --host ram=abc", 2,
                "--host ram: \"abc\" is not a size; write a size like 64G, 512M or 8589934592"},
        Refused{"predict cnn_mnist --gpu t4 --host cores=8,ram=64G,cores=4", 2,
                "--host: cores is given twice; give it once"},
        Refused{"predict cnn_mnist --gpu t4 --host cores=8,ram=64", 2,
                "--host ram: 64 B cannot be; possible are 16.0 MiB to 1024.00 TiB"},
        Refused{"predict cnn_mnist --gpu t4 --sample-cost 0ms", 2,
                "--sample-cost: \"0ms\" is no time; write 2.5ms, 300us or 0.1s"},
        Refused{"predict cnn_mnist --gpu t4 --samples 1.5", 2,
                "--samples: \"1.5\" is no whole number; write 50000, 50k or 1.28M (stoker predict "
                "--help)"},
        Refused{"predict cnn_mnist --gpu t4 --batch 1k", 2,
                "--batch: \"1k\" is no batch; write a number of samples per GPU, or max for the "
                "largest that is safe; write 1024"},
        Refused{"predict cnn_mnist --gpu t4 --gpus 0", 2,
                "--gpus: \"0\" is no number of GPUs from 1 to 1,024; write 4, 1,2,4 or 1..8"},
        Refused{"predict cnn_mnist --gpu t4 --price inf", 3,
                "--price: must be a price per GPU and hour below 1,000,000, not inf"},
        Refused{"predict cnn_mnist --gpu t4 --price 0", 3,
                "--price: must be a positive price per GPU and hour, not 0"},
        Refused{"predict cnn_mnist --gpu t4 --momentum nan", 3,
                "--momentum: must lie between 0 and 1"},
        Refused{"predict cnn_mnist --gpu t4 --memory-fraction 0", 3,
                "--memory-fraction: must be above 0 and at most 1"},
        Refused{"predict cnn_mnist --gpu t4 --network 10G", 2,
                "--network: joins nodes, and there is one; give --nodes, or leave it out"},
        Refused{"predict cnn_mnist --gpu t4 --link infiniband", 2,
                "--link: unknown link \"infiniband\" (known: pcie, nvlink)"},
        Refused{"predict cnn_mnist --gpu t4 --price prices.csv", 2,
                "--price: a price file serves rented machines (--gpu aws:g5.2xlarge); give the "
                "price of a GPU and hour as a number"},
        Refused{"predict cnn_mnist --gpu t4 -- --epochs 3", 2,
                "cnn_mnist: only a training script (FILE.py) takes arguments of its own; leave out "
                "what follows --, and --batch-arg"},
        Refused{"predict cnn_mnist --gpu t4 --from run.watch --data images", 2,
                "--from: tells what samples cost already; leave out --data"},
        Refused{"predict cnn_mnist --gpu t4 --coefficients nofile.toml", 3,
                "nofile.toml: no such file; check the path"},
        Refused{"predict cnn_mnist --gpu t4 --color red", 2,
                "--color: takes auto, always or never, not \"red\""},
        Refused{"plan cnn_mnist --gpu t4 --budget -1", 3, "--budget: must be positive"},
        Refused{
            "plan cnn_mnist --gpu t4 --budget 1", 2,
            "--budget: a budget needs --price and the size of the data set (--data or --samples)"},
        Refused{"plan cnn_mnist --gpu t4 --run-budget 1", 2,
                "--run-budget: the budget of a run needs --price, --epochs and the size of the "
                "data set (--data or --samples)"},
        Refused{"plan cnn_mnist --gpu t4 --objective energie", 2,
                "--objective: unknown objective \"energie\"; did you mean energy? (known: "
                "throughput, cost, epoch, energy)"},
        Refused{"plan cnn_mnist --gpu t4 --step-ms 4", 2,
                "--step-ms: is of a plan of the input alone; leave it out, or leave out the MODEL "
                "(cores: --host cores=16)"},
        Refused{"plan --from nofile --gpu t4", 2,
                "--gpu: is of a plan with a MODEL; a plan of the input alone takes the step as it "
                "was measured (--step-ms). Leave it out, or give a MODEL"},
        Refused{"plan --sample-cost 3ms", 2,
                "MODEL is missing, or --step-ms with --data, or --from with a recording, for a "
                "plan of the input alone (stoker plan --help)"},
        Refused{"explain nofile", 3, "nofile: no such file; check the path"},
        Refused{"explain odd.bin", 3,
                "odd.bin: is none of what explain reads: a memory snapshot (.pickle), a "
                "torch.profiler trace (.json), a recording of `stoker watch`"},
        Refused{"explain empty.json", 3,
                "empty.json: has no [memory] events of a CUDA device (profile_memory=True records "
                "them), nor operators and kernels as torch.profiler writes them, among its 0 "
                "events; is it another program's trace?"},
        Refused{"explain bad.pickle", 3,
                "bad.pickle: key segments is missing; is it a snapshot of torch.cuda.memory?"},
        Refused{"explain empty.json --at peak", 2,
                "--at: belongs to snapshots; a profile is told at its peak"},
        Refused{"explain empty.json --gpu t4", 2,
                "--gpu: belongs to snapshots; a profile is not replayed for a GPU; leave it out"},
        Refused{"explain bad.pickle --at begin", 2, "--at: is peak, oom or end, not \"begin\""},
        Refused{"explain bad.pickle --against x", 2,
                "--against: belongs to recordings of a watch; leave it out"},
        Refused{"explain bad.pickle --all-findings", 2,
                "--all-findings: belongs to recordings of a watch; leave it out"},
        Refused{"explain bad.pickle --device -1", 3, "--device: must be at least 0"},
        Refused{"watch", 2,
                "watch: needs a process id, or -- and a command, or --job, or --all: stoker watch "
                "4242, or stoker watch -- python train.py"},
        Refused{"watch abc", 2,
                "\"abc\": is no process id; to start a command write -- before it: stoker watch -- "
                "abc"},
        Refused{"watch 1 2", 2,
                "one word too many: 2; stoker watch takes PID and flags (stoker watch --help)"},
        Refused{"models --batch 4", 2, "models: sizes go with one model: name it"},
        Refused{"models cnn_mnist --dim x=3", 3,
                "cnn_mnist has no dimension \"x\"; it has batch; leave out --dim x"},
        Refused{
            "machine extra", 2,
            "one word too many: extra; stoker machine takes flags alone (stoker machine --help)"},
        Refused{"completion tcsh", 2,
                "shell: unknown shell \"tcsh\"; did you mean bash? (known: bash, zsh, fish)"},
        Refused{"page rows.csv -o out.html", 3,
                "rows.csv: is cut short or damaged (not valid JSON); make it again"},
        Refused{"fit nofile.csv", 3, "nofile.csv: no such file; check the path"},
        Refused{"calibrate cuda:0 -o out.toml", 2,
                "cuda:0: is no rows file; the device is named by --device: stoker calibrate -o "
                "MACHINE.toml --device cuda:0"},
        Refused{"calibrate cuda_rows.json -o out.toml", 3,
                "cuda_rows.json: no such file; check the path"},
        Refused{"calibrate empty.json -o out.toml", 3,
                "empty.json: is no file of format stoker-calibration; measure again with `stoker "
                "calibrate`"},
        Refused{"validate", 2,
                "validate: say what to validate: stoker validate MODEL (training steps), or stoker "
                "validate --input (data loading)"},
        Refused{"validate nofile.json --device t4", 2,
                "--device: nothing is measured where a file is given; leave it out"},
        Refused{"probe /no/such", 3, "/no/such: no such file or folder; check the path"},
        Refused{"probe rows.csv --kind video", 2,
                "--kind: \"video\" is no kind; write pictures, tar-shards, records or text"},
        Refused{"study nofile.db", 3, "nofile.db: there is no such study"},
        Refused{"sweep --vary n=1..3", 3,
                "there is no command; put it behind --, or write command ="},
        Refused{"sweep --vary n -- echo {n}", 2,
                "--vary n: write NAME=VALUES: --vary batch=32,64,128"},
        Refused{"sweep --vary n=1 -- echo {m}", 3,
                "command: \"m\" is no axis of this study; did you mean n?"},
        Refused{"sweep --vary n=1,1 -- echo {n}", 3,
                "--vary n=1,1: \"1,1\" has 1 twice; --repeat 2 runs settings again"},
        Refused{"sweep --vary n=1..1e9 -- echo {n}", 3,
                "--vary n=1..1e9: \"1..1e9\" has 1e+09 values, and at most 100000 are tried; give "
                "a step or fewer"},
        Refused{"sweep --vary n=1 --metric loss:up -- echo {n}", 2,
                "--metric loss:up: the goal is max or min: --metric loss:min"},
        Refused{"tune --metric loss", 2,
                "say what is to be chosen: --batch 512..16384x2, --lr 1e-5..1e-1, or both"},
        Refused{"tune --metric loss --lr 1..0 -- echo {lr}", 2,
                "--lr: \"1..0\" goes down: put the smaller end first"},
        Refused{"tune --metric loss --lr 0..1 -- echo {lr}", 2, "--lr: \"0\" is no number above 0"},
        Refused{"tune --noise-scale 1000 --gpu t4", 2,
                "--noise-scale: needs the throughput forecast: --model MODEL --gpu GPU --batch "
                "64..4096x2"}));

}  // namespace
}  // namespace stoker::cli
