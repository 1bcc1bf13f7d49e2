#include <string_view>
#include <vector>

#include "cli/python.h"
#include "cli/verbs.h"

int main(int argc, char** argv) {
  using namespace stoker::cli;
  // capture is Python's: its flags are its own and go there unread.
  if (argc > 1 && std::string_view(argv[1]) == "capture") {
    const auto code = run_python_stoker(std::vector<std::string>(argv + 1, argv + argc), false);
    if (code) return *code;
    std::fprintf(stderr, "stoker: %s\n", code.error().text().c_str());
    return exit_code_of(code.error().code);
  }
  const std::vector<Command> commands{plan_command(),    predict_command(), explain_command(),
                                      capture_command(), probe_command(),   models_command(),
                                      gpus_command(),    fit_command(),     calibrate_command(),
                                      validate_command()};
  return run_command_line(commands, argc, argv);
}
