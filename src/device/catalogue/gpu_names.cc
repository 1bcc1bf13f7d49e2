#include "device/catalogue/gpu_names.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/setting.h"
#include "base/text.h"

namespace stoker {
namespace {

/// Words that drivers and shops put around the model's name and that decide nothing.
constexpr std::array<std::string_view, 17> kDecoration{
    "nvidia", "tesla", "geforce", "quadro", "amd",    "instinct", "radeon",   "gpu",       "hbm2",
    "hbm2e",  "hbm3",  "hbm3e",   "gddr6",  "tensor", "core",     "graphics", "generation"};

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// "80gb", "80gib", "80g" -> "80", so that sizes compare however they are written.
std::string without_size_unit(const std::string& word) {
  for (const std::string_view unit : {"gib", "gb", "g"}) {
    if (word.ends_with(unit) &&
        all_digits(std::string_view(word).substr(0, word.size() - unit.size()))) {
      return word.substr(0, word.size() - unit.size());
    }
  }
  return word;
}

/// Lower-case words of a name without decoration; "RTX 3090 Ti" and "rtx3090ti" give the same ones.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  const auto flush = [&] {
    if (!word.empty() && std::ranges::find(kDecoration, word) == kDecoration.end()) {
      const bool suffix = (word == "ti" || word == "super" || word == "s") && !words.empty();
      const bool digits_of_brand =
          all_digits(word) && !words.empty() && (words.back() == "rtx" || words.back() == "gtx");
      if (suffix || digits_of_brand) words.back() += word;
      else words.push_back(without_size_unit(word));
    }
    word.clear();
  };
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else {
      flush();
    }
  }
  flush();
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += word;
  return all;
}

bool lists_alias(const GpuNames& names, const std::string& wanted) {
  return std::ranges::any_of(
      names.aliases, [&](const std::string& alias) { return joined(words_of(alias)) == wanted; });
}

bool has_all_words(const GpuNames& names, const std::vector<std::string>& wanted) {
  std::vector<std::string> own = words_of(names.name);
  for (const std::string& alias : names.aliases) {
    for (std::string& word : words_of(alias)) own.push_back(std::move(word));
  }
  return std::ranges::all_of(
      wanted, [&](const std::string& word) { return std::ranges::find(own, word) != own.end(); });
}

std::string list_of(std::span<const GpuNames> names, const std::vector<std::size_t>& indices,
                    std::size_t left_out) {
  std::string text;
  for (const std::size_t i : indices) {
    if (i != left_out) text += (text.empty() ? "" : ", ") + names[i].name;
  }
  return text;
}

/// Accelerators that people name in the place of a GPU and that no model here covers.
struct Foreign {
  std::string_view words;   ///< for the refusal
  std::string_view begins;  ///< of a name without blanks and dashes
};

constexpr std::array<Foreign, 19> kForeign{{{"a Google TPU", "tpu"},
                                            {"a Google TPU", "googletpu"},
                                            {"an Apple GPU", "apple"},
                                            {"an Apple GPU", "mps"},
                                            {"an Apple GPU", "m1"},
                                            {"an Apple GPU", "m2"},
                                            {"an Apple GPU", "m3"},
                                            {"an Apple GPU", "m4"},
                                            {"an Intel Gaudi (Habana)", "gaudi"},
                                            {"an Intel Gaudi (Habana)", "habana"},
                                            {"an Intel Gaudi (Habana)", "hpu"},
                                            {"an Intel GPU", "intel"},
                                            {"an Intel GPU", "xpu"},
                                            {"an Intel GPU", "arca"},
                                            {"an AWS Trainium", "trainium"},
                                            {"an AWS Trainium", "trn"},
                                            {"an AWS Inferentia", "inf"},
                                            {"a Huawei Ascend", "ascend"},
                                            {"a Graphcore IPU", "ipu"}}};

/// The words of the first entry that `typed` begins with: "m2-max", "TPU v3-8". A letter and a
/// digit alone ("m1") must end there or go on in letters, since M10 and M40 are NVIDIA's.
const Foreign* foreign(std::string_view typed) {
  const std::string name = simplified(typed);
  for (const Foreign& one : kForeign) {
    if (!name.starts_with(one.begins)) continue;
    const bool digit_follows =
        name.size() > one.begins.size() &&
        std::isdigit(static_cast<unsigned char>(name[one.begins.size()])) != 0;
    if (one.begins.size() == 2 && digit_follows) continue;
    return &one;
  }
  return nullptr;
}

/// What to name instead of a computer or of somebody who rents them out; empty: it is none of them.
std::string of_computer(std::string_view typed) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kComputers{
      {{"colab", "t4 (without payment), else l4 or a100-40gb"},
       {"googlecolab", "t4 (without payment), else l4 or a100-40gb"},
       {"kaggle", "2xt4 or p100"},
       {"dgxa100", "8xa100-80gb"},
       {"dgxh100", "8xh100"},
       {"dgxh200", "8xh200"},
       {"dgxb200", "8xb200"},
       {"dgx1", "8xv100"},
       {"dgx2", "16xv100-32gb"}}};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kListed{
      {{"aws", "aws:g5.2xlarge"},
       {"ec2", "aws:g5.2xlarge"},
       {"gcp", "gcp:a2-highgpu-1g"},
       {"googlecloud", "gcp:a2-highgpu-1g"},
       {"azure", "azure:NC24ads_A100_v4"},
       {"lambda", "lambda:gpu_1x_a10"}}};
  constexpr std::array<std::string_view, 8> kOthers{
      "runpod", "vast", "vastai", "paperspace", "coreweave", "modal", "lightningai", "sagemaker"};
  const std::string name = simplified(typed);
  for (const auto& [computer, gpus] : kComputers) {
    if (name.starts_with(computer)) return "is a computer; name its GPUs: " + std::string(gpus);
  }
  for (const auto& [provider, machine] : kListed) {
    if (name.starts_with(provider)) {
      const std::string_view key = machine.substr(0, machine.find(':'));
      return "rents out many machines; name one: " + std::string(machine) +
             " (`stoker gpus --instances " + std::string(key) + "` lists them)";
    }
  }
  if (std::ranges::find(kOthers, name) != kOthers.end())
    return "rents out many machines; name the GPU and the rest: " + mark(Setting::kGpu) +
           " rtx-4090 " + mark(Setting::kHost) + " cores=8,ram=32G";
  return {};
}

/// GPUs that are sold and that the table lacks: the nearest name would be another product's. Empty:
/// it is none of them.
std::string of_unlisted(std::string_view typed) {
  struct Product {
    std::string_view name, as;  ///< without decoration; what has the same chip and memory
  };
  constexpr std::array<Product, 20> kProducts{{{"a800", "a100-80gb"},
                                               {"a80080", "a100-80gb"},
                                               {"h800", "h100"},
                                               {"h80080", "h100"},
                                               {"h20", ""},
                                               {"l20", ""},
                                               {"l2", ""},
                                               {"a2", ""},
                                               {"a16", ""},
                                               {"titanv", ""},
                                               {"titanrtx", ""},
                                               {"rtxpro6000", ""},
                                               {"rtxpro5000", ""},
                                               {"rtxa2000", ""},
                                               {"a2000", ""},
                                               {"rtx4000ada", ""},
                                               {"rtx5000ada", ""},
                                               {"rtx3060ti", ""},
                                               {"rtx3070ti", ""},
                                               {"rtx3090ti", ""}}};
  const std::string name = joined(words_of(typed));
  for (const Product& one : kProducts) {
    if (name != one.name && "rtx" + name != one.name) continue;
    std::string words = "is not in the table (`stoker gpus`); ";
    if (!one.as.empty())
      words += "on one GPU it is as " + std::string(one.as) + ", its NVLink is slower; ";
    return words + "a machine file describes it (docs/reference/machine-file.md)";
  }
  return {};
}

/// "a100,h100" where several stand in one word or sentence: "a100/h100", "a100 or h100"; empty:
/// there is one.
std::string with_commas_between(std::string_view typed) {
  std::string plain(typed), list;
  for (const std::string_view between : {" or ", " and ", " vs ", " vs. ", "/", "|", "+", ";"}) {
    for (std::size_t at = plain.find(between); at != std::string::npos; at = plain.find(between))
      plain.replace(at, between.size(), ",");
  }
  for (const std::string& part : split(plain, ',')) {
    const auto first = part.find_first_not_of(' ');
    if (first == std::string::npos) continue;
    list += (list.empty() ? "" : ",") + part.substr(first, part.find_last_not_of(' ') + 1 - first);
  }
  return plain == typed ? std::string() : list;
}

bool is_of_a_laptop(std::string_view typed) {
  const std::string name = simplified(typed);
  // There are cards for workstations of the same name, "Max-Q Workstation Edition".
  if (name.find("workstation") != std::string::npos) return false;
  return std::ranges::any_of(
      std::array<std::string_view, 3>{"laptop", "mobile", "maxq"},
      [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

std::pair<std::string, std::string> letters_and_digits(std::string_view name) {
  std::pair<std::string, std::string> parts;
  for (const char c : simplified(name))
    (std::isdigit(static_cast<unsigned char>(c)) != 0 ? parts.second : parts.first) += c;
  return parts;
}

/// The GPU that was meant where only a size follows its name: "rtx-3060-12gb" -> "RTX3060"; empty:
/// there is none.
std::string without_size(std::string_view typed, std::span<const GpuNames> names) {
  std::vector<std::string> words = words_of(typed);
  if (words.size() < 2 || !all_digits(words.back())) return {};
  words.pop_back();
  const std::string wanted = joined(words);
  for (const GpuNames& one : names) {
    if (joined(words_of(one.name)) == wanted || lists_alias(one, wanted)) return one.name;
  }
  return {};
}

enum class Shared { kNumber, kEither };

/// Two cards of other families with other numbers (A6000, P4000) are no slip of the keyboard, so
/// that of the known names those are offered which share the letters or the digits of what was
/// typed.
std::vector<std::string> relatives(std::string_view typed, const std::vector<std::string>& known,
                                   Shared shared) {
  const auto wanted = letters_and_digits(typed);
  std::vector<std::string> near;
  for (const std::string& name : known) {
    const auto has = letters_and_digits(name);
    if (has.second == wanted.second || (shared == Shared::kEither && has.first == wanted.first))
      near.push_back(name);
  }
  return near;
}

/// "a100-mig-1g.5gb", "1g.10gb": a part that a GPU was cut into.
bool is_a_slice(std::string_view typed) {
  const std::vector<std::string> words = words_of(typed);
  if (std::find(words.begin(), words.end(), "mig") != words.end()) return true;
  for (std::size_t at = 1; at + 1 < typed.size(); ++at) {
    const auto digit = [&](std::size_t i) {
      return std::isdigit(static_cast<unsigned char>(typed[i])) != 0;
    };
    if (typed[at] == 'g' && typed[at + 1] == '.' && digit(at - 1)) return true;
  }
  return false;
}

tl::unexpected<Error> unknown(std::string_view typed, std::span<const GpuNames> names) {
  std::vector<std::string> known;
  for (const GpuNames& one : names) {
    known.push_back(one.name);
    known.insert(known.end(), one.aliases.begin(), one.aliases.end());
  }
  if (const Foreign* other = foreign(typed)) {
    return fail(
        ErrorCode::kUnsupported,
        "\"" + std::string(typed) + "\" is " + std::string(other->words) +
            ", which is not modelled; NVIDIA GPUs, AMD Instinct and CPUs are (`stoker gpus`)");
  }
  if (is_a_slice(typed))
    return fail(
        ErrorCode::kUnsupported,
        "\"" + std::string(typed) +
            "\" is a part of a GPU (MIG), which is not modelled; a machine file describes "
            "a device of its memory and share of the cores (docs/reference/machine-file.md)");
  if (const std::string computer = of_computer(typed); !computer.empty())
    return fail(ErrorCode::kNotFound, "\"" + std::string(typed) + "\" " + computer);
  if (const std::string words = of_unlisted(typed); !words.empty())
    return fail(ErrorCode::kNotFound, "\"" + std::string(typed) + "\" " + words);
  if (const std::string list = with_commas_between(typed); !list.empty())
    return fail(ErrorCode::kNotFound, "no GPU is called \"" + std::string(typed) +
                                          "\"; several stand with commas: " + list);
  if (is_of_a_laptop(typed))
    return fail(ErrorCode::kNotFound,
                "\"" + std::string(typed) +
                    "\" is a laptop's, with fewer cores and less power than the card of that "
                    "name; a machine file describes it (docs/reference/machine-file.md)");
  // The number of a card, "4090", says more than what stands before and behind it.
  constexpr std::size_t kTelling = 3;
  std::string near;
  if (letters_and_digits(typed).second.size() >= kTelling)
    near = suggestion(typed, relatives(typed, known, Shared::kNumber));
  if (near.empty()) near = suggestion(typed, relatives(typed, known, Shared::kEither));
  if (near.empty()) {
    const std::string unsized_name = without_size(typed, names);
    if (!unsized_name.empty()) near = "; did you mean " + unsized_name + "?";
  }
  return fail(ErrorCode::kNotFound,
              "no GPU is called \"" + std::string(typed) + "\"" + (near.empty() ? ";" : near) +
                  " `stoker gpus` lists all, a machine file describes others");
}

}  // namespace

Result<GpuNameMatch> match_gpu_name(std::string_view typed, std::span<const GpuNames> names) {
  const std::vector<std::string> words = words_of(typed);
  const std::string wanted = joined(words);
  if (wanted.empty()) {
    return fail(ErrorCode::kUsage, "the name of a GPU is missing; `stoker gpus` lists all");
  }
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t chosen = kNone;
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string own = joined(words_of(names[i].name));
    // Nobody says GeForce's brand: "4080 super", "1080 ti".
    const bool but_brand = own == "rtx" + wanted || own == "gtx" + wanted;
    if (simplified(names[i].name) == simplified(typed) || own == wanted || but_brand) {
      return GpuNameMatch{i, ""};
    }
    if (chosen == kNone && lists_alias(names[i], wanted)) chosen = i;
    if (has_all_words(names[i], words)) candidates.push_back(i);
  }
  if (chosen == kNone && candidates.size() == 1) chosen = candidates[0];
  if (chosen == kNone && candidates.empty()) return unknown(typed, names);
  if (chosen == kNone) {
    return fail(ErrorCode::kNotFound, "\"" + std::string(typed) + "\" may be any of " +
                                          list_of(names, candidates, kNone) + "; name one");
  }
  const std::string others = list_of(names, candidates, chosen);
  if (others.empty()) return GpuNameMatch{chosen, ""};
  return GpuNameMatch{
      chosen, std::string(typed) + " taken as " + names[chosen].name + " (others: " + others + ")"};
}

}  // namespace stoker
