#include "cli/arguments/meant_verb.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "device/catalogue/gpu_catalogue.h"
#include "scenario/settings/settings.h"

namespace stoker::cli {
namespace {

/// What people call the verbs, by the beginnings of words that they type, several joined; of
/// several that fit, the first.
constexpr auto kVerbMeanings = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"howmanygpu numberofgpu", "plan MODEL --gpu GPU --gpus 1..8"},
    {"whichgpu bestgpu whatgpu compar versus", "plan MODEL --gpu A,B"},
    {"lrfind lrrange lrtest learningrate", "tune --lr-test -- python train.py --lr {lr}"},
    {"lora finetun", "predict MODEL --gpu GPU --lora r=16"},
    {"batchsize maxbatch largestbatch", "predict MODEL --gpu GPU --batch max"},
    {"worker dataloader loader", "plan MODEL --gpu GPU --data FOLDER"},
    {"howlong duration epochtime", "plan MODEL --gpu GPU --samples N"},
    {"howmuch cost", "plan MODEL --gpu GPU --price 1.2 --samples N"},
    {"optim recommend advis suggest search best autotune", "plan MODEL --gpu GPU"},
    {"instance cloud provider price rent", "gpus --instances"},
    {"canitrain canirun willitfit", "predict MODEL --gpu GPU --batch N"},
    {"monitor attach slow run idle underus utili bottleneck stall starv",
     "watch -- python train.py"},
    {"oom outofmemory snapshot trace analy diagnos profil", "explain FILE"},
    {"fit fits estimat forecast memory vram flops", "predict MODEL --gpu GPU --batch N"},
    {"train", "watch -- python train.py"},
    {"benchmark bench measure", "calibrate"},
    {"hpo hyperparam optuna tuning tuner", "tune"},
    {"grid", "sweep"},
    {"gpu card", "gpus"},
    {"list zoo", "models"},
});

/// The place of several GPUs in the commands above.
constexpr std::string_view kSeveral = "A,B";

/// Words of a sentence that name neither a model nor a GPU.
constexpr auto kSentenceFillers = std::to_array<std::string_view>(
    {"a",        "an",    "the",  "my",   "i",    "is",    "it",     "in",   "to",
     "of",       "for",   "on",   "do",   "does", "will",  "can",    "how",  "what",
     "why",      "which", "with", "many", "much", "be",    "should", "need", "take",
     "when",     "long",  "so",   "use",  "and",  "one",   "fit",    "fits", "train",
     "training", "gpu",   "gpus", "run",  "slow", "epoch", "price",  "cost"});

/// Words that a model's name follows, and those before a GPU's.
constexpr std::array<std::string_view, 10> kBeforeModel{
    "for", "of", "does", "will", "can", "train", "training", "finetune", "fine-tune", "run"};
constexpr std::array<std::string_view, 3> kBeforeGpu{"on", "with", "using"};

template <std::size_t N>
bool is_in(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool is_number(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// What a command line tells, for the places of another.
struct Told {
  std::string model, batch, data;
  std::string gpu;                 ///< several with commas, as --gpu takes them
  std::vector<std::string> flags;  ///< the others, with their values

  void add_gpu(const std::string& name) { gpu += (gpu.empty() ? "" : ",") + name; }
};

/// Whether a word names a GPU; a short number is a batch size.
bool is_gpu(const std::string& word) {
  constexpr std::size_t kShortest = 4;  // "3090"
  return (!is_number(word) || word.size() >= kShortest) && find_gpu(word).has_value();
}

const SettingRow* setting_of(std::string_view verb, std::string_view flag) {
  for (const SettingRow* row : settings_of(verb)) {
    if (answers_to(*row, flag)) return row;
  }
  return nullptr;
}

/// What `words` tell the verb by flags and places: MODEL, GPU and numbers, as Python's functions
/// take them.
Told told_by(std::string_view verb, const std::vector<std::string>& words) {
  Told told;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("-")) {
      if (is_gpu(word)) told.add_gpu(word);
      else (is_number(word) ? told.batch : told.model.empty() ? told.model : told.gpu) = word;
      continue;
    }
    const auto equals = std::min(word.find('='), word.size());
    const SettingRow* row = setting_of(verb, word.substr(0, equals));
    const bool bare = equals == word.size() && i + 1 < words.size() && row != nullptr &&
                      row->type != SettingType::kSwitch && row->type != SettingType::kPair;
    const std::string value = bare                    ? words[i + 1]
                              : equals == word.size() ? std::string()
                                                      : word.substr(equals + 1);
    std::string* place = row == nullptr         ? nullptr
                         : row->name == "gpu"   ? &told.gpu
                         : row->name == "batch" ? &told.batch
                         : row->name == "data"  ? &told.data
                                                : nullptr;
    if (place != nullptr && !value.empty()) *place = value;
    else told.flags.push_back(bare ? word + " " + value : word);
    if (bare) ++i;
  }
  return told;
}

/// What a sentence tells: the model behind "for" or "train", the GPU behind "on".
Told told_in_sentence(const std::vector<std::string>& words) {
  Told told;
  std::string* wanted = nullptr;
  for (const std::string& word : words) {
    if (is_in(kBeforeGpu, word)) {
      wanted = &told.gpu;
    } else if (is_in(kBeforeModel, word)) {
      wanted = &told.model;
    } else if (wanted != &told.gpu && is_gpu(word)) {
      told.add_gpu(word);
    } else if (wanted != nullptr && !is_in(kSentenceFillers, word)) {
      if (wanted->empty()) *wanted = word;
      wanted = nullptr;
    }
  }
  return told;
}

/// Whether the words are a sentence rather than a command.
bool is_sentence(const std::vector<std::string>& words) {
  const bool flags = std::any_of(words.begin(), words.end(),
                                 [](const std::string& word) { return word.starts_with("-"); });
  const auto fillers = std::count_if(words.begin(), words.end(), [](const std::string& word) {
    return is_in(kSentenceFillers, word);
  });
  return !flags && fillers > 1;
}

/// A name behind which the shell sees one word.
std::string shell_word(const std::string& text) {
  return text.find(' ') == std::string::npos ? text : "\"" + text + "\"";
}

std::string filled(std::string_view sample, const Told& told) {
  std::string text, before;
  const std::vector<std::string> gpus = split(told.gpu, ',');
  // A word behind the model that names no GPU is another model.
  const bool known = std::all_of(gpus.begin(), gpus.end(), is_gpu);
  const std::string several = !known             ? std::string()
                              : gpus.size() == 1 ? told.gpu + ",B"
                                                 : told.gpu;
  for (const std::string& word : split(sample, ' ')) {
    const std::string& given = word == "MODEL" || word == "FILE" ? told.model
                               : word == "GPU"                   ? told.gpu
                               : word == kSeveral                ? several
                               : before == "--batch"             ? told.batch
                               : word == "FOLDER"                ? told.data
                                                                 : word;
    text += (text.empty() ? "" : " ") + (given.empty() ? word : shell_word(given));
    before = word;
  }
  // Where the sample has no place for what was told, it follows as a flag.
  const auto add = [&](const char* flag, const std::string& value) {
    const bool named = text.find(std::string(" ") + flag + " ") != std::string::npos;
    if (!value.empty() && !named) text += std::string(" ") + flag + " " + shell_word(value);
  };
  if (sample.starts_with("gpus") && !told.model.empty()) text += " " + shell_word(told.model);
  if (sample.starts_with("plan ") || sample.starts_with("predict ")) {
    add("--batch", told.batch);
    add("--data", told.data);
    for (const std::string& flag : told.flags) text += " " + flag;
  }
  return text;
}

std::vector<std::string> lower_words(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const std::string& word : words) {
    for (std::string part : split(lower_case(word), ' ')) {
      while (part.ends_with('?')) part.pop_back();
      if (!part.empty()) all.push_back(std::move(part));
    }
  }
  return all;
}

/// What was typed from each of its words on, as one word: "how-many-workers" -> howmanyworkers,
/// manyworkers, workers.
std::vector<std::string> parts_of(std::string_view typed) {
  std::vector<std::string> parts;
  bool inside = false;
  for (const unsigned char c : typed) {
    const bool is_letter = std::isalnum(c) != 0;
    if (is_letter && !inside) parts.emplace_back();
    inside = is_letter;
    if (!is_letter) continue;
    for (std::string& part : parts) part += static_cast<char>(std::tolower(c));
  }
  return parts;
}

bool begins_one(const std::vector<std::string>& parts, std::string_view word) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return part.starts_with(word); });
}

/// Whether this whole word is what people call a verb: "fits", "run".
bool is_a_meaning(std::string_view typed) {
  const std::string plain = simplified(typed);
  return std::any_of(kVerbMeanings.begin(), kVerbMeanings.end(), [&](const auto& meaning) {
    const std::vector<std::string> words = split(meaning.first, ' ');
    return std::find(words.begin(), words.end(), plain) != words.end();
  });
}

/// Whether a word differs from a verb by so little that it is a slip of the fingers.
bool is_misspelt(const std::string& typed, const std::vector<std::string>& verbs) {
  const std::string near = nearest_name(typed, verbs), plain = simplified(typed);
  if (near.empty()) return false;
  const std::string verb = simplified(near);
  const auto letters = [](std::string word) {
    std::sort(word.begin(), word.end());
    return word;
  };
  const bool one_more_or_less = plain.size() + 1 >= verb.size() && plain.size() <= verb.size() + 1;
  // A slip moves letters, or adds or loses one: what is near in another way may still be a word of
  // its own.
  std::string missing;
  const std::string a = letters(plain), b = letters(verb);
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(),
                                std::back_inserter(missing));
  return one_more_or_less && missing.size() <= (plain.size() == verb.size() ? 0 : 1);
}

}  // namespace

std::string verb_by_meaning(std::string_view typed) {
  const std::vector<std::string> parts = parts_of(typed);
  for (const auto& [words, verb] : kVerbMeanings) {
    for (const std::string& word : split(words, ' ')) {
      if (begins_one(parts, word)) return std::string(verb);
    }
  }
  return {};
}

std::string meant_command(const std::vector<std::string>& words,
                          const std::vector<std::string>& verbs) {
  if (words.empty()) return {};
  const std::vector<std::string> lower = lower_words(words);
  if (is_sentence(lower)) {
    std::string all;
    for (const std::string& word : lower) all += word + " ";
    const std::string sample = verb_by_meaning(all);
    return sample.empty() ? sample : filled(sample, told_in_sentence(lower));
  }
  const std::string& first = words.front();
  if (!is_a_meaning(first) && is_misspelt(first, verbs)) return {};
  const std::string sample = verb_by_meaning(first);
  if (sample.empty()) return {};
  const std::string verb = sample.substr(0, sample.find(' '));
  return filled(sample, told_by(verb, {words.begin() + 1, words.end()}));
}

}  // namespace stoker::cli
