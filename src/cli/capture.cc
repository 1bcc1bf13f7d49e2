#include "cli/verbs.h"

namespace stoker::cli {

/// Listed for `stoker --help`; main.cc hands the verb to Python before anything is parsed here.
Command capture_command() {
  return {
      "capture",
      "capture one step of a model, without a GPU, into a step file (needs Python with PyTorch)",
      "",
      {},
      [] { return Result<int>(0); }};
}

}  // namespace stoker::cli
