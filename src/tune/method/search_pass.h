#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tune/method/search.h"

/// Internal to src/tune/method: one pass of a search over a history.
namespace stoker::tune {

class SearchPass {
 public:
  SearchPass(const SearchOptions& options, const std::vector<double>& rungs,
             const std::vector<Bracket>& brackets,
             const std::vector<std::vector<std::string>>& listed, std::int64_t configs,
             const History& history);

  [[nodiscard]] Walk run();

 private:
  struct Config {
    std::vector<std::string> values;
    const Outcome* latest = nullptr;  ///< that is seen
    std::size_t asked = 0;            ///< rungs that were asked for: 1 is the first of its bracket
    std::size_t first = 0;            ///< rung at which its bracket begins
  };

  void next_of_asha();
  void next_of_hyperband();
  void next_of_whole();
  /// Asks for a configuration that is not known yet.
  void begin(std::int64_t config, std::size_t rung);
  void go_on(std::int64_t config, std::size_t rung);
  [[nodiscard]] Request request(std::int64_t config, std::size_t rung) const;
  [[nodiscard]] bool waits() const { return history_.seen < history_.jobs.size(); }
  /// A configuration's score at a rung; nothing where it has not come so far. What diverged or
  /// failed is behind all others.
  [[nodiscard]] std::optional<double> score(const Outcome& outcome, std::size_t rung) const;
  [[nodiscard]] std::vector<Ranked> at_rung(std::size_t rung) const;

  void tell();
  [[nodiscard]] std::string name(const Config& config) const;
  void tell_job(std::size_t job, std::vector<std::vector<Ranked>>& so_far);
  void tell_end();
  void choose();
  /// Whether the best can be told from the others, as a decision.
  void tell_noise();
  [[nodiscard]] std::vector<const Outcome*> latest() const;
  /// Settings that lead nowhere, however they ranked before.
  [[nodiscard]] static bool broke(const Outcome& outcome);

  const SearchOptions& options_;
  const std::vector<double>& rungs_;
  const std::vector<Bracket>& brackets_;
  const std::vector<std::vector<std::string>>& listed_;
  const std::int64_t configs_;
  const History& history_;
  std::map<std::int64_t, Config> known_;
  Walk walk_;
};

}  // namespace stoker::tune
