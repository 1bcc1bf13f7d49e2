#include "report/text/measured/trained_words.h"

#include <cstdio>

#include "step/trained_share.h"

namespace stoker {
namespace {

/// "124 M", "8.03 G".
std::string count_words(double count) {
  char text[32];
  if (count >= 1e9) std::snprintf(text, sizeof text, "%.3g G", count * 1e-9);
  else if (count >= 1e6) std::snprintf(text, sizeof text, "%.3g M", count * 1e-6);
  else if (count >= 1e3) std::snprintf(text, sizeof text, "%.3g k", count * 1e-3);
  else std::snprintf(text, sizeof text, "%.0f", count);
  return text;
}

}  // namespace

std::string trained_words(const Step& step) {
  if (step.mode != "train") return {};
  const TrainedShare found = trained_share(step);
  if (found.trained <= 0 || found.trained >= found.total) return {};
  char share[32];
  constexpr double kWhole = 0.01;  // from one per cent on three digits, below it two
  std::snprintf(share, sizeof share, found.share() < kWhole ? "%.2g %%" : "%.3g %%",
                100 * found.share());
  return "trains " + count_words(found.trained) + " of " + count_words(found.total) +
         " parameters (" + share + ")";
}

}  // namespace stoker
