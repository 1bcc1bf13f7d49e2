#include "cli/arguments/field_words.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "scenario/settings/settings.h"

namespace stoker::cli {
namespace {

/// What Transformers, Lightning, DeepSpeed and timm have switches for.
constexpr auto kSwitches = std::to_array<std::pair<std::string_view, FieldSwitch>>(
    {{"gradientcheckpointing", {"checkpoint", "blocks"}},
     {"activationcheckpointing", {"checkpoint", "blocks"}},
     {"gradcheckpointing", {"checkpoint", "blocks"}},
     {"recompute", {"checkpoint", "blocks"}},
     {"bf16", {"precision", "amp-bf16"}},
     {"fp16", {"precision", "amp-fp16"}},
     {"tf32", {"precision", "tf32"}},
     {"fp32", {"precision", "fp32"}},
     {"fsdp", {"parallel", "fsdp-zero3"}},
     {"zero3", {"parallel", "fsdp-zero3"}},
     {"zero2", {"parallel", "fsdp-zero2"}},
     {"ddp", {"parallel", "ddp"}},
     {"dataparallel", {"parallel", "dp"}}});

/// A flag of the field, the setting that means the same (empty: none does), and what to say.
struct Meaning {
  std::string_view flag, setting, words;
};

constexpr std::string_view kPrecisionIs = "it is --precision amp-bf16 or amp-fp16 here";
constexpr std::string_view kHostIs = "it is --host cores=8,ram=64G here";
constexpr std::string_view kLoraIs = "it is --lora r=16,targets=q_proj,v_proj here";
constexpr std::string_view kLengthIs = "it is --seq-len here";
constexpr std::string_view kGpusIs = "it is --gpus here (--gpus 1..8: how many pay)";
constexpr std::string_view kNoEffect = "it changes neither memory nor time of a step; leave it out";
constexpr std::string_view kAttentionIs =
    "PyTorch's choice of attention kernels is followed; leave it out";
constexpr std::string_view kMachineIs =
    "name a GPU with --gpu; a machine file describes one of any memory";

constexpr std::string_view kRentedAre =
    "machines to rent are listed by --instances, of one provider: stoker gpus --instances aws";
constexpr std::string_view kNoPrices =
    "prices age and are not shipped; give yours to plan or predict: --price 1.2";

constexpr std::string_view kBudgetIs =
    "what an epoch or a run may cost is --budget or --run-budget here; --price is a GPU's rent "
    "an hour";
constexpr std::string_view kEnergyIs =
    "answers say kWh where an epoch's samples are known; leave "
    "it out";
constexpr std::string_view kTimeIs =
    "times are what is forecast; beside a run of yours: stoker watch PID, or stoker validate";
constexpr std::string_view kDeadlineIs =
    "with --epochs the answer says how long a run takes; --objective epoch seeks the shortest";
constexpr std::string_view kDetailsAre = "it is --explain here";
constexpr std::string_view kStorageIs =
    "it is --host disk=200M,iops=5000 here, or by its kind: --storage nfs";
constexpr std::string_view kShareIs =
    "what of the GPU's memory the job may have is --memory-fraction here: 0.5 for the half";
constexpr std::string_view kModeIs = "it is --mode inference here (or forward: its graph is kept)";
constexpr std::string_view kFrozenIs =
    "what a model does not train is written in its code: FILE.py:FUNCTION with "
    "requires_grad_(False), or --lora r=16";
constexpr std::string_view kOfTheModel =
    "the zoo's models are as they were captured; FILE.py:FUNCTION builds yours with others";
constexpr std::string_view kAsJson =
    "answers for programs go to standard output: --json > out.json";
constexpr std::string_view kRunIs =
    "a run's length is --epochs here, an epoch's --samples: steps x batch x GPUs / epochs";
constexpr std::string_view kFindingsAre = "it is --findings here";
constexpr std::string_view kNoOrder =
    "they are listed by name; --memory 24G leaves out smaller ones";
constexpr std::string_view kShuffled =
    "samples are taken in random order, as a DataLoader that shuffles asks for them; leave it out";
constexpr std::string_view kMeasuredIs =
    "which of this machine's devices is measured says --device here: --device cuda:0, or cpu";
constexpr std::string_view kComparedIs =
    "what trains is --device here (cuda:0, or cpu), what is forecast --machine";
constexpr std::string_view kWatchedIs =
    "a job is watched by its process: stoker watch PID (nvidia-smi lists those of a GPU)";

constexpr auto kMeanings = std::to_array<Meaning>({
    {"globalbatch", "max-global-batch", "its largest: --max-global-batch"},
    {"globalbatchsize", "max-global-batch", "its largest: --max-global-batch"},
    {"bs", "batch", "it is --batch here"},
    {"trainbatchsize", "batch", "it is --batch here"},
    {"microbatch", "batch", "it is --batch here"},
    {"microbatchsize", "batch", "it is --batch here"},
    {"loadin8bit", "qlora", "8-bit weights are not modelled; 4-bit ones are: --qlora"},
    {"int8", "qlora", "8-bit weights are not modelled; 4-bit ones are: --qlora"},
    {"quantize", "qlora", "4-bit weights under adapters are --qlora here"},
    {"quantization", "qlora", "4-bit weights under adapters are --qlora here"},
    {"4bit", "qlora", "4-bit weights under adapters are --qlora here"},
    {"nf4", "qlora", "4-bit weights under adapters are --qlora here"},
    {"lorar", "lora", kLoraIs},
    {"lorarank", "lora", kLoraIs},
    {"loraalpha", "lora", kLoraIs},
    {"loratargets", "lora", kLoraIs},
    {"targetmodules", "lora", kLoraIs},
    {"adapters", "lora", kLoraIs},
    {"gradaccum", "accumulate", "it is --accumulate here"},
    {"accumgrad", "accumulate", "it is --accumulate here"},
    {"amp", "precision", kPrecisionIs},
    {"useamp", "precision", kPrecisionIs},
    {"autocast", "precision", kPrecisionIs},
    {"mixedprecision", "precision", kPrecisionIs},
    {"half", "precision", "it is --precision fp16 (the whole model) or amp-fp16 here"},
    {"dtype", "precision", "it is --precision here"},
    {"torchdtype", "precision", "it is --precision here"},
    {"zero", "parallel", "it is --parallel zero2 or zero3 here"},
    {"zerostage", "parallel", "it is --parallel zero2 or zero3 here"},
    {"deepspeed", "parallel", "it is --parallel zero2 or zero3 here, as fully_shard does it"},
    {"strategy", "parallel", "it is --parallel here: ddp, fsdp-zero2, fsdp-zero3"},
    {"multigpu", "gpus", kGpusIs},
    {"distributed", "gpus", kGpusIs},
    {"gpucount", "gpus", kGpusIs},
    {"ngpu", "gpus", kGpusIs},
    {"nproc", "gpus", kGpusIs},
    {"nprocpernode", "gpus", kGpusIs},
    {"nnodes", "nodes", "it is --nodes here"},
    {"worldsize", "gpus", kGpusIs},
    {"devices", "gpus", kGpusIs},
    {"accelerator", "gpu", "it is --gpu here"},
    {"model", "model", "the model is named without a flag: stoker VERB MODEL"},
    {"modelname", "model", "the model is named without a flag: stoker VERB MODEL"},
    {"arch", "model", "the model is named without a flag: stoker VERB MODEL"},
    {"minmemory", "memory", "it is --memory here"},
    {"vram", "memory", "it is --memory here"},
    {"on", "instances", kRentedAre},
    {"cloud", "instances", kRentedAre},
    {"provider", "instances", kRentedAre},
    {"price", "instances", kNoPrices},
    {"prices", "instances", kNoPrices},
    {"list", "", "`stoker models` and `stoker gpus` list what is known"},
    {"instance", "gpu", "it is --on here: --on aws:g5.2xlarge"},
    {"instancetype", "gpu", "it is --on here: --on aws:g5.2xlarge"},
    {"context", "seq-len", kLengthIs},
    {"contextlength", "seq-len", kLengthIs},
    {"contextsize", "seq-len", kLengthIs},
    {"contextwindow", "seq-len", kLengthIs},
    {"ctx", "seq-len", kLengthIs},
    {"nctx", "seq-len", kLengthIs},
    {"length", "seq-len", kLengthIs},
    {"ctxlen", "seq-len", kLengthIs},
    {"maxlen", "seq-len", kLengthIs},
    {"tokens", "seq-len",
     "a sequence's are --seq-len, a data set's are --samples here: its tokens by that length"},
    {"totaltokens", "samples", "it is --samples here, which counts sequences: tokens by --seq-len"},
    {"datasettokens", "samples",
     "it is --samples here, which counts sequences: tokens by --seq-len"},
    {"resolution", "image-size", "it is --image-size here"},
    {"imgsz", "image-size", "it is --image-size here"},
    {"inputsize", "image-size", "it is --image-size here"},
    {"dataset", "data", "it is --data here"},
    {"traindir", "data", "it is --data here"},
    {"traindata", "data", "it is --data here"},
    {"cpu", "host", kHostIs},
    {"cpus", "host", kHostIs},
    {"vcpus", "host", kHostIs},
    {"cpucores", "host", kHostIs},
    {"ncpus", "host", kHostIs},
    {"memory", "host", "the host's is --host ram=64G here, the GPU's comes with its name"},
    {"ram", "host", kHostIs},
    {"hostmemory", "host", kHostIs},
    {"vram", "gpu", kMachineIs},
    {"gpumemory", "gpu", kMachineIs},
    {"gpumem", "gpu", kMachineIs},
    {"cost", "price", "it is --price here: money per GPU and hour"},
    {"hourlyprice", "price", "it is --price here: money per GPU and hour"},
    {"priceperhour", "price", "it is --price here: money per GPU and hour"},
    {"maxprice", "budget", kBudgetIs},
    {"pricelimit", "budget", kBudgetIs},
    {"maxcost", "budget", kBudgetIs},
    {"costlimit", "budget", kBudgetIs},
    {"maxhourlyprice", "budget", kBudgetIs},
    {"spotprice", "price", "it is --price here: money per GPU and hour"},
    {"electricity", "", kEnergyIs},
    {"electricityprice", "", kEnergyIs},
    {"kwhprice", "", kEnergyIs},
    {"co2", "", kEnergyIs},
    {"carbon", "", kEnergyIs},
    {"maxsteps", "epochs", kRunIs},
    {"steps", "epochs", kRunIs},
    {"iterations", "epochs", kRunIs},
    {"numsteps", "epochs", kRunIs},
    {"trainsteps", "epochs", kRunIs},
    {"numtrainsteps", "epochs", kRunIs},
    {"iters", "epochs", kRunIs},
    {"disk", "storage", kStorageIs},
    {"diskspeed", "storage", kStorageIs},
    {"diskbandwidth", "storage", kStorageIs},
    {"readspeed", "storage", kStorageIs},
    {"iops", "storage", kStorageIs},
    {"bandwidth", "storage", kStorageIs},
    {"nfs", "storage", kStorageIs},
    {"memorylimit", "memory-fraction", kShareIs},
    {"maxmemory", "memory-fraction", kShareIs},
    {"gpumemorylimit", "memory-fraction", kShareIs},
    {"memlimit", "memory-fraction", kShareIs},
    {"freememory", "memory-fraction", kShareIs},
    {"gpumemoryutilization", "memory-fraction", kShareIs},
    {"inference", "mode", kModeIs},
    {"eval", "mode", kModeIs},
    {"evalonly", "mode", kModeIs},
    {"forwardonly", "mode", kModeIs},
    {"nograd", "mode", kModeIs},
    {"freeze", "lora", kFrozenIs},
    {"frozen", "lora", kFrozenIs},
    {"freezebackbone", "lora", kFrozenIs},
    {"frozenbackbone", "lora", kFrozenIs},
    {"freezelayers", "lora", kFrozenIs},
    {"headonly", "lora", kFrozenIs},
    {"linearprobe", "lora", kFrozenIs},
    {"numclasses", "lora", kOfTheModel},
    {"classes", "lora", kOfTheModel},
    {"numlabels", "lora", kOfTheModel},
    {"dropout", "lora", kOfTheModel},
    {"hiddensize", "lora", kOfTheModel},
    {"numlayers", "lora", kOfTheModel},
    {"nlayer", "lora", kOfTheModel},
    {"depth", "lora", kOfTheModel},
    {"csv", "samples", kAsJson},
    {"out", "samples", kAsJson},
    {"output", "samples", kAsJson},
    {"format", "samples", kAsJson},
    {"save", "samples", kAsJson},
    {"droplast", "last-batch",
     "an epoch's last batch is taken as dropped or full; --last-batch auto has the smaller one"},
    {"best", "findings", kFindingsAre},
    {"summary", "findings", kFindingsAre},
    {"analysis", "findings", kFindingsAre},
    {"cheapest", "instances", kNoPrices},
    {"sort", "instances", kNoOrder},
    {"sortby", "instances", kNoOrder},
    {"gpu", "pid", kWatchedIs},
    {"gpu", "for", kMeasuredIs},
    {"gpu", "learn", kComparedIs},
    {"shuffle", "workers", kShuffled},
    {"epochtime", "", kTimeIs},
    {"timeperepoch", "", kTimeIs},
    {"hoursperepoch", "", kTimeIs},
    {"secondsperepoch", "", kTimeIs},
    {"steptime", "", kTimeIs},
    {"secondsperstep", "", kTimeIs},
    {"itspersecond", "", kTimeIs},
    {"measured", "", kTimeIs},
    {"deadline", "epochs", kDeadlineIs},
    {"maxtime", "epochs", kDeadlineIs},
    {"maxhours", "epochs", kDeadlineIs},
    {"timelimit", "epochs", kDeadlineIs},
    {"timebudget", "epochs", kDeadlineIs},
    {"why", "explain", kDetailsAre},
    {"details", "explain", kDetailsAre},
    {"breakdown", "explain", kDetailsAre},
    {"layers", "explain", kDetailsAre},
    {"lr", "", kNoEffect},
    {"learningrate", "", kNoEffect},
    {"seed", "", kNoEffect},
    {"warmup", "", kNoEffect},
    {"warmupsteps", "", kNoEffect},
    {"scheduler", "", kNoEffect},
    {"flashattention", "", kAttentionIs},
    {"flashattn", "", kAttentionIs},
    {"attnimplementation", "", kAttentionIs},
    {"sdpa", "", kAttentionIs},
    {"offload", "", "offloading to the host is not modelled; leave it out"},
    {"cpuoffload", "", "offloading to the host is not modelled; leave it out"},
});

/// Words of a flag that say nothing of what is set.
constexpr std::array<std::string_view, 14> kFillers{"number", "num",   "count", "of",  "the",
                                                    "per",    "max",   "total", "my",  "use",
                                                    "enable", "train", "set",   "with"};

std::vector<std::string> words_in(std::string_view flag) {
  while (flag.starts_with('-')) flag.remove_prefix(1);
  std::string text(flag);
  std::replace(text.begin(), text.end(), '_', '-');
  return split(text, '-');
}

std::vector<std::string> telling_words(std::string_view flag) {
  std::vector<std::string> words = words_in(flag);
  std::erase_if(words, [](const std::string& word) {
    return word.size() < 2 || std::find(kFillers.begin(), kFillers.end(), word) != kFillers.end();
  });
  return words;
}

/// "gpus" and "gpu" are one word.
bool same_word(std::string_view a, std::string_view b) {
  const auto stem = [](std::string_view word) {
    return word.size() > 2 && word.ends_with('s') ? word.substr(0, word.size() - 1) : word;
  };
  return stem(a) == stem(b);
}

/// "--gradient_checkpointing" -> "gradientcheckpointing".
template <class Row, std::size_t N, class Name>
const Row* row_of(const std::array<Row, N>& table, std::string_view flag, const Name& name_of) {
  const std::string plain = simplified(flag);
  const auto row =
      std::find_if(table.begin(), table.end(), [&](const Row& r) { return name_of(r) == plain; });
  return row == table.end() ? nullptr : &*row;
}

}  // namespace

std::string flag_by_words(std::string_view flag, const std::vector<std::string>& names) {
  const std::vector<std::string> asked = telling_words(flag), all = words_in(flag);
  const auto shared_with = [](const std::vector<std::string>& words,
                              const std::vector<std::string>& own) {
    return std::count_if(own.begin(), own.end(), [&](const std::string& word) {
      return std::any_of(words.begin(), words.end(),
                         [&](const std::string& one) { return same_word(one, word); });
    });
  };
  std::string best;
  // Telling words shared, telling words of its own beside them, words shared that tell nothing.
  std::array<std::ptrdiff_t, 3> most{0, 0, 0};
  for (const std::string& name : names) {
    const std::vector<std::string> own = telling_words(name);
    const auto shared = shared_with(asked, own);
    const std::array<std::ptrdiff_t, 3> score{shared, shared - std::ssize(own),
                                              shared_with(all, words_in(name))};
    if (shared == 0 || (!best.empty() && score <= most)) continue;
    best = name;
    most = score;
  }
  return best;
}

std::optional<FieldSwitch> switch_of_the_field(std::string_view verb, std::string_view flag) {
  if (!flag.starts_with("--")) return std::nullopt;
  const auto* row = row_of(kSwitches, flag, [](const auto& r) { return r.first; });
  if (row == nullptr || find_setting(verb, row->second.setting) == nullptr) return std::nullopt;
  return row->second;
}

std::string advice_on(std::string_view verb, std::string_view flag) {
  // One word means several things, of which the verb has one.
  const std::string plain = simplified(flag);
  const auto row = std::find_if(kMeanings.begin(), kMeanings.end(), [&](const Meaning& m) {
    return m.flag == plain && (m.setting.empty() || find_setting(verb, m.setting) != nullptr);
  });
  return row == kMeanings.end() ? std::string() : std::string(row->words);
}

}  // namespace stoker::cli
