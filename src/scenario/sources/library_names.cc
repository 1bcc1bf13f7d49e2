#include "scenario/sources/library_names.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace stoker {
namespace {

struct Family {
  std::string_view words;   ///< what simplified names begin with, by blanks
  std::string_view source;  ///< the organisation on the hub, or a library's prefix
  bool numbered = false;    ///< a number alone names a network: phi-2
};

/// Who publishes a family; of two that fit, the first. Stable Diffusion is missing: it is several
/// networks in diffusers' own format, which `hf:` does not read.
constexpr auto kFamilies = std::to_array<Family>({
    {"tinyllama", "hf:TinyLlama/"},
    {"llama metallama codellama", "hf:meta-llama/"},
    {"mistral mixtral ministral codestral", "hf:mistralai/"},
    {"gemma t5gemma flan t5 mt5 byt5 ul2 pegasus bigbird electra mobilebert siglip vit",
     "hf:google/"},
    {"bert albert", "hf:google-bert/"},
    {"qwen qwq", "hf:Qwen/"},
    {"phi", "hf:microsoft/", true},
    {"deberta beit minilm layoutlm trocr codebert", "hf:microsoft/"},
    {"deepseek", "hf:deepseek-ai/"},
    {"roberta xlmroberta camembert", "hf:FacebookAI/"},
    {"distilgpt", "hf:distilbert/", true},
    {"distilbert", "hf:distilbert/"},
    {"gptneo gptj pythia", "hf:EleutherAI/"},
    {"gpt2", "hf:openai-community/"},
    {"whisper clip gptoss", "hf:openai/"},
    {"opt galactica bart mbart m2m nllb wav2vec hubert dino detr sam musicgen", "hf:facebook/"},
    {"bloom", "hf:bigscience/"},
    {"falcon", "hf:tiiuae/"},
    {"smollm smolvlm", "hf:HuggingFaceTB/"},
    {"olmo longformer led", "hf:allenai/"},
    {"starcoder santacoder", "hf:bigcode/"},
    {"mpt", "hf:mosaicml/"},
    {"granite", "hf:ibm-granite/"},
    {"internlm", "hf:internlm/"},
    {"chatglm glm", "hf:zai-org/"},
    {"yi1 yi6 yi9 yi34", "hf:01-ai/"},
    {"mamba", "hf:state-spaces/"},
    {"resnet resnext wideresnet densenet vgg alexnet mobilenet efficientnet mnasnet shufflenet "
     "squeezenet inception googlenet regnet convnext swin maxvit fasterrcnn maskrcnn retinanet "
     "fcn deeplab lraspp r3d mc3 mvit s3d keypointrcnn ssd",
     "torchvision:"},
    {"deit cait tresnet nfnet coatnet xception seresnet res2net mixnet ghostnet repvgg pvt "
     "efficientvit mlpmixer eva davit hrnet",
     "timm:"},
});

/// "7b", "base", "large": without one, families on the hub name no network.
bool has_size(std::string_view plain) {
  constexpr std::array<std::string_view, 12> kSizes{"tiny",   "mini",  "small",  "base",
                                                    "medium", "large", "xlarge", "xl",
                                                    "huge",   "xxl",   "xs",     "nano"};
  const bool word = std::any_of(kSizes.begin(), kSizes.end(), [&](std::string_view size) {
    return plain.find(size) != std::string_view::npos;
  });
  for (std::size_t i = 1; !word && i < plain.size(); ++i) {
    const bool ends =
        i + 1 == plain.size() || std::isdigit(static_cast<unsigned char>(plain[i + 1])) == 0;
    if ((plain[i] == 'b' || plain[i] == 'm') && ends &&
        std::isdigit(static_cast<unsigned char>(plain[i - 1])) != 0)
      return true;
  }
  return word;
}

/// Libraries' names are Python's: "mobilenet-v2" -> "mobilenet_v2".
std::string python_name(std::string_view typed) {
  std::string name;
  for (const char c : typed) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    name += plain ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '_';
  }
  return name;
}

/// Whether `typed` begins with the word. Three letters begin many names ("sample"), so they must
/// end there.
bool begins_with(std::string_view typed, std::string_view word) {
  constexpr std::size_t kTelling = 4;
  if (!simplified(typed).starts_with(word)) return false;
  std::size_t letters = 0, at = 0;
  for (; at < typed.size() && letters < word.size(); ++at)
    letters += std::isalnum(static_cast<unsigned char>(typed[at])) != 0 ? 1 : 0;
  return word.size() >= kTelling || at == typed.size() ||
         std::isalpha(static_cast<unsigned char>(typed[at])) == 0;
}

/// What may be pasted into a shell behind "hf:".
bool is_plain(std::string_view typed) {
  return !typed.empty() && std::all_of(typed.begin(), typed.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace

std::string library_name(std::string_view typed) {
  if (!is_plain(typed)) return {};
  // timm writes sizes of patches and images with underscores: vit_small_patch16_224.
  if (typed.find("_patch") != std::string_view::npos) return "timm:" + std::string(typed);
  for (const Family& family : kFamilies) {
    for (const std::string& word : split(family.words, ' ')) {
      if (!begins_with(typed, word)) continue;
      const std::string source(family.source);
      const std::string rest = simplified(typed).substr(word.size());
      if (!source.starts_with("hf:"))
        return rest.empty() ? std::string() : source + python_name(typed);
      const bool named = has_size(rest) || (family.numbered && !rest.empty());
      return source + (named ? std::string(typed) : "NAME");
    }
  }
  return {};
}

}  // namespace stoker
