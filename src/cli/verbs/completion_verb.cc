#include <cstdio>
#include <memory>

#include "cli/arguments/completion.h"
#include "cli/verbs/verbs.h"
#include "device/catalogue/gpu_catalogue.h"
#include "scenario/sources/model_source.h"

namespace stoker::cli {
namespace {

/// Nothing where the data are missing: verbs and flags are completed without them.
KnownNames known_names() {
  KnownNames known;
  const auto add = [](std::string& list, const std::string& name) {
    list += (list.empty() ? "" : " ") + name;
  };
  if (const auto models = zoo_names()) {
    for (const std::string& name : *models) add(known.models, name);
  }
  if (const auto catalogue = GpuCatalogue::load()) {
    for (std::size_t i = 0; i < catalogue->all().size(); ++i) {
      const auto& aliases = catalogue->aliases(i);
      add(known.gpus, aliases.empty() ? catalogue->all()[i].name : aliases.front());
    }
  }
  return known;
}

}  // namespace

Command completion_command() {
  auto shell = std::make_shared<std::string>();
  return {"completion",
          "completion of verbs and flags for bash, zsh or fish",
          "  source <(stoker completion bash)                  (or zsh)\n"
          "  stoker completion zsh > ~/.zfunc/_stoker          (a folder of $fpath)\n"
          "  stoker completion fish > ~/.config/fish/completions/stoker.fish",
          {{"shell", shell.get()}},
          [shell] {
            const std::vector<Section> verbs = all_verbs();
            const KnownNames known = known_names();
            const std::string script = *shell == "bash"  ? bash_completion(verbs, known)
                                       : *shell == "zsh" ? zsh_completion(verbs, known)
                                                         : fish_completion(verbs, known);
            std::fputs(script.c_str(), stdout);
            return Result<int>(0);
          }};
}

}  // namespace stoker::cli
