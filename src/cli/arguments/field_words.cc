#include "cli/arguments/field_words.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "scenario/settings/settings.h"

namespace stoker::cli {
namespace {

/// What Transformers, Lightning, DeepSpeed and timm have switches for.
constexpr std::array<std::pair<std::string_view, FieldSwitch>, 9> kSwitches{
    {{"gradientcheckpointing", {"checkpoint", "blocks"}},
     {"activationcheckpointing", {"checkpoint", "blocks"}},
     {"gradcheckpointing", {"checkpoint", "blocks"}},
     {"bf16", {"precision", "amp-bf16"}},
     {"fp16", {"precision", "amp-fp16"}},
     {"tf32", {"precision", "tf32"}},
     {"fp32", {"precision", "fp32"}},
     {"fsdp", {"parallel", "fsdp-zero3"}},
     {"ddp", {"parallel", "ddp"}}}};

/// A flag of the field, the setting that means the same (empty: none does), and what to say.
struct Meaning {
  std::string_view flag, setting, words;
};

constexpr std::array<Meaning, 27> kMeanings{{
    {"globalbatch", "max-global-batch", "its largest: --max-global-batch"},
    {"globalbatchsize", "max-global-batch", "its largest: --max-global-batch"},
    {"lora", "",
     "adapters are not modelled by a flag; give a FILE.py:FUNCTION that wraps the model"},
    {"qlora", "", "4-bit weights are not modelled"},
    {"loadin4bit", "", "4-bit weights are not modelled"},
    {"loadin8bit", "", "8-bit weights are not modelled"},
    {"peft", "",
     "adapters are not modelled by a flag; give a FILE.py:FUNCTION that wraps the model"},
    {"gradaccum", "accumulate", "it is --accumulate here"},
    {"accumgrad", "accumulate", "it is --accumulate here"},
    {"amp", "precision", "it is --precision amp-bf16 or amp-fp16 here"},
    {"mixedprecision", "precision", "it is --precision amp-bf16 or amp-fp16 here"},
    {"dtype", "precision", "it is --precision here"},
    {"zerostage", "parallel", "it is --parallel zero2 or zero3 here"},
    {"deepspeed", "parallel", "it is --parallel zero2 or zero3 here, as fully_shard does it"},
    {"strategy", "parallel", "it is --parallel here: ddp, fsdp-zero2, fsdp-zero3"},
    {"nprocpernode", "gpus", "it is --gpus here"},
    {"nnodes", "nodes", "it is --nodes here"},
    {"worldsize", "gpus", "it is --gpus here"},
    {"devices", "gpus", "it is --gpus here"},
    {"accelerator", "gpu", "it is --gpu here"},
    {"contextlength", "seq-len", "it is --seq-len here"},
    {"blocksize", "seq-len", "it is --seq-len here"},
    {"resolution", "image-size", "it is --image-size here"},
    {"dataset", "data", "it is --data here"},
    {"traindir", "data", "it is --data here"},
    {"cpus", "host", "it is --host cores=N here"},
    {"vram", "gpu", "name a GPU with --gpu; a machine file describes one of any memory"},
}};

/// "--gradient_checkpointing" -> "gradientcheckpointing".
template <class Row, std::size_t N, class Name>
const Row* row_of(const std::array<Row, N>& table, std::string_view flag, const Name& name_of) {
  const std::string plain = simplified(flag);
  const auto row =
      std::find_if(table.begin(), table.end(), [&](const Row& r) { return name_of(r) == plain; });
  return row == table.end() ? nullptr : &*row;
}

}  // namespace

std::optional<FieldSwitch> switch_of_the_field(std::string_view verb, std::string_view flag) {
  if (!flag.starts_with("--")) return std::nullopt;
  const auto* row = row_of(kSwitches, flag, [](const auto& r) { return r.first; });
  if (row == nullptr || find_setting(verb, row->second.setting) == nullptr) return std::nullopt;
  return row->second;
}

std::string advice_on(std::string_view verb, std::string_view flag) {
  const Meaning* row = row_of(kMeanings, flag, [](const Meaning& m) { return m.flag; });
  if (row == nullptr) return {};
  const bool has = row->setting.empty() || find_setting(verb, row->setting) != nullptr;
  return has ? std::string(row->words) : std::string();
}

}  // namespace stoker::cli
