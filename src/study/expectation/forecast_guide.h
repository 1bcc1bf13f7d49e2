#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "study/controller/guide.h"
#include "study/expectation/correction.h"

namespace stoker::study {

/// What the trials that have not ended will take.
struct Outlook {
  std::int64_t trials = 0;            ///< waiting or running; those that run count whole
  std::optional<Banded> trial_s{};    ///< the times of all of them together
  std::optional<Banded> elapsed_s{};  ///< until the last has ended, so many at a time
  int at_a_time = 1;
  std::optional<Banded> gpu_hours{}, money{}, kwh{};
};

struct GuideOptions {
  Order order = Order::kAsWritten;
  enum class Prune : std::uint8_t { kNothing, kBeaten } prune = Prune::kNothing;
  int at_a_time = 1;
};

/// The advice of forecasts and of what they came to. Knows all trials of a study, with the
/// forecasts that the store holds for them.
///
/// A trial is dominated when it is certain (99 %) to be slower than one that is done, with no fewer
/// GPUs for it: by samples a second where those are reported, else by its time. Where a study
/// measures what is learnt (any metric but those two), only trials that differ in nothing but how
/// data is loaded and on how many cores can dominate each other.
class ForecastGuide final : public Guide {
 public:
  ForecastGuide(const Study& study, const std::vector<TrialRow>& rows, GuideOptions options);

  void ended(const TrialRow& row) override;
  [[nodiscard]] std::optional<std::string> leave_out(const TrialRow& row) override;
  [[nodiscard]] std::map<std::string, double> expected(const TrialRow& row) override;
  void arrange(std::deque<TrialRow>& waiting) override;

  [[nodiscard]] Outlook outlook() const;

 private:
  struct Known {
    std::vector<std::string> values;
    std::int64_t seed = 0;
    std::map<std::string, double> forecast;
    int gpus = 0;
    bool open = true;  ///< has not ended
  };
  struct Done {
    std::int64_t trial;
    double value;  ///< samples a second, or the time
    int gpus;
  };
  [[nodiscard]] Correction::Prior time_of(const Known& trial) const;
  [[nodiscard]] static Correction::Prior rate_of(const Known& trial);
  /// What two trials have to share for one to dominate the other.
  [[nodiscard]] std::vector<std::string> rivals_of(const Known& trial) const;
  void learn(std::int64_t id, Known& trial, TrialState state,
             const std::map<std::string, double>& metrics, const std::optional<double>& wall_s);
  [[nodiscard]] double price() const;

  const Study& study_;
  GuideOptions options_;
  std::vector<std::string> axes_;
  std::map<std::int64_t, Known> trials_;
  Correction time_, rate_;
  bool learning_ = false;  ///< the study measures what is learnt
  std::map<std::vector<std::string>, std::vector<Done>> done_;
  std::size_t arranged_with_ = 0;
};

}  // namespace stoker::study
