#include "cli/verbs/verbs.h"

int main(int argc, char** argv) {
  return stoker::cli::run_command_line(stoker::cli::all_verbs(), {argv + 1, argv + argc});
}
