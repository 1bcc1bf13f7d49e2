#pragma once

#include "study/controller/controller.h"

namespace stoker::cli {

/// Blocks the signals that end a study and tells what the user wants by those that came: Ctrl-C
/// lets running trials end, twice ends them; SIGTERM leaves them running.
class Wishes {
 public:
  Wishes();
  study::Wish operator()();

 private:
  void take(int number);

  study::Wish wish_ = study::Wish::kGoOn;
};

}  // namespace stoker::cli
