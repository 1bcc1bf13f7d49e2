#include <cstdio>
#include <memory>

#include "cli/arguments/completion.h"
#include "cli/verbs/verbs.h"

namespace stoker::cli {

Command completion_command() {
  auto shell = std::make_shared<std::string>();
  return {"completion",
          "completion of verbs and flags for bash, zsh or fish",
          "  source <(stoker completion bash)\n"
          "  stoker completion zsh > ~/.zfunc/_stoker          (a folder of $fpath)\n"
          "  stoker completion fish > ~/.config/fish/completions/stoker.fish",
          {{"shell", shell.get()}},
          [shell] {
            const std::vector<Section> verbs = all_verbs();
            const std::string script = *shell == "bash"  ? bash_completion(verbs)
                                       : *shell == "zsh" ? zsh_completion(verbs)
                                                         : fish_completion(verbs);
            std::fputs(script.c_str(), stdout);
            return Result<int>(0);
          }};
}

}  // namespace stoker::cli
