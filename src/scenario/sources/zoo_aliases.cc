#include "scenario/sources/zoo_aliases.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace stoker {
namespace {

struct Alias {
  std::string_view model;  ///< of the zoo
  std::string_view names;  ///< simplified, by blanks
};

/// One network by several names. Llama 3 and 3.1 have the same sizes.
constexpr auto kAliases = std::to_array<Alias>({
    {"bert_base", "bert bertbaseuncased bertbasecased"},
    {"bert_large", "bertlargeuncased bertlargecased"},
    {"gpt2", "gpt gpt2small gpt2124m"},
    {"llama_1b", "llama321b llama31b metallama321b"},
    {"llama_3_8b", "llama3 llama31 llama318b metallama38b metallama318b llama8b"},
    {"mistral_7b", "mistral mistral7bv01 mistral7bv02 mistral7bv03"},
    {"qwen2_5_7b", "qwen qwen25 qwen7b qwen257binstruct"},
    {"vit_b_16", "vit vitb vitbase vitb16 vitbasepatch16224"},
    {"vit_l_16", "vitl vitlarge vitlargepatch16224"},
    {"whisper_small", "whisper openaiwhispersmall"},
    {"sd_unet", "stablediffusion stablediffusion15 stablediffusionunet sd15 sd14 sd15unet"},
    {"t5_small", "t5"},
    {"swin_t", "swin swintiny"},
    {"convnext_tiny", "convnext"},
    {"efficientnet_b0", "efficientnet"},
    {"unet", "unet2d"},
});

/// Families of which the zoo has one member that stands for none of the others exactly.
constexpr auto kRelatives = std::to_array<Alias>({
    {"yolo_s", "yolo"},
    {"unet", "unet segmentation deeplab fcn"},
    {"sd_unet", "sd stablediffusion diffusion ddpm flux pixart kandinsky"},
    {"llama_3_8b", "llama vicuna alpaca tinyllama gemma phi deepseek smollm olmo yi internlm glm"},
    {"mistral_7b", "mistral mixtral ministral zephyr"},
    {"qwen2_5_7b", "qwen"},
    {"gpt2", "gpt nanogpt mingpt opt bloom pythia falcon"},
    {"bert_base", "bert roberta distilbert electra deberta albert"},
    {"whisper_small", "whisper wav2vec conformer hubert"},
    {"vit_b_16", "vit deit dino clip beit"},
    {"t5_small", "t5 bart mt5 flant5"},
    {"resnet50", "resnet inception googlenet regnet"},
});

std::string held(std::string_view model, const std::vector<std::string>& names) {
  const bool has = std::find(names.begin(), names.end(), model) != names.end();
  return has ? std::string(model) : std::string();
}

}  // namespace

std::string zoo_alias(std::string_view name, const std::vector<std::string>& names) {
  const std::string wanted = simplified(name);
  for (const Alias& alias : kAliases) {
    const std::vector<std::string> words = split(alias.names, ' ');
    if (std::find(words.begin(), words.end(), wanted) != words.end())
      return held(alias.model, names);
  }
  return {};
}

std::string zoo_relative(std::string_view name, const std::vector<std::string>& names) {
  const std::string wanted = simplified(name);
  for (const Alias& family : kRelatives) {
    for (const std::string& word : split(family.names, ' ')) {
      if (wanted.starts_with(word)) return held(family.model, names);
    }
  }
  return {};
}

}  // namespace stoker
