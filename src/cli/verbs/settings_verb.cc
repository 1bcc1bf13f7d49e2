#include <cstdio>
#include <memory>

#include "cli/arguments/settings_page.h"
#include "cli/outside/output.h"
#include "cli/verbs/verbs.h"

namespace stoker::cli {

Command settings_command() {
  auto markdown = std::make_shared<bool>(false);
  return {"settings",
          "every setting of every verb, with PyTorch's names for it",
          "",
          {{"markdown", markdown.get()}},
          [markdown] {
            const std::string text = *markdown ? settings_page(all_verbs()) : settings_list();
            print(text);
            return Result<int>(0);
          }};
}

}  // namespace stoker::cli
