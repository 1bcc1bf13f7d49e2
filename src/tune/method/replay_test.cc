#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "base/text.h"
#include "tune/method/greedy.h"
#include "tune/method/simulated_trials.h"

namespace stoker::tune {
namespace {

/// A published study of recurrent networks as a table: utilisation, accuracy and time by batch and
/// learning rate. Replayed as if its runs were trials.
struct Study {
  std::map<std::string, std::pair<double, int>> busy;  ///< by batch: sum and count
  std::map<std::pair<std::string, std::string>, double> accuracy, seconds;
};

std::optional<Study> read_study(const std::string& model) {
  const char* shared = std::getenv("STOKER_SHARED");
  const std::string folder =
      shared != nullptr ? shared : std::string(STOKER_SOURCE_DIR) + "/../shared";
  std::ifstream file(folder + "/data/rnn-grid.csv");
  if (!file) return std::nullopt;
  Study study;
  for (std::string line; std::getline(file, line);) {
    const auto cells = split(line, ',');
    if (cells.size() < 7 || cells[2] != model) continue;
    const double value = std::atof(cells[6].c_str());
    const auto at = std::pair(cells[3], cells[4]);
    if (cells[5] == "gpu_util_pct") {
      auto& [sum, count] = study.busy[cells[3]];
      sum += value / 100;
      ++count;
    }
    // Where the report's text and its figure both tell, the figure's comes first and stays.
    if (cells[5] == "val_accuracy") study.accuracy.emplace(at, value);
    if (cells[5] == "total_train_time_s") study.seconds.emplace(at, value);
  }
  return study;
}

std::vector<BatchFigure> figures_of(const Study& study) {
  std::vector<BatchFigure> figures;
  for (const auto& [batch, busy] : study.busy)
    figures.push_back({batch, std::atof(batch.c_str()), {}, busy.first / busy.second});
  std::ranges::sort(figures, {}, &BatchFigure::batch);
  return figures;
}

TEST(ReplayTest, TheStudysOwnTable) {
  const auto study = read_study("encdec_gru");
  if (!study) GTEST_SKIP() << "no measured tables: STOKER_SHARED, or ../shared";
  GreedyOptions o;
  o.by = BatchBy::kUtilisation;
  o.forecast = figures_of(*study);
  for (const BatchFigure& f : o.forecast) o.batches.push_back(f.value);
  o.rates = {"1e-05", "0.0001", "0.01", "0.1"};
  o.refine = 0;
  o.final_run = false;
  double spent = 0, grid = 0;
  for (const auto& [at, seconds] : study->seconds) grid += at.second == "0.003" ? 0 : seconds;
  SimulatedTrials trials{[&](const Request& r) {
    Outcome outcome;
    const auto at = std::pair(r.values[0], r.values[1]);
    if (!study->accuracy.contains(at)) {  // the grid has holes, and no rates beyond its ends
      outcome.end = End::kFailed;
      return outcome;
    }
    outcome.curve.points = {{1, 1, study->accuracy.at(at)}};
    if (study->seconds.contains(at)) spent += outcome.wall_s = study->seconds.at(at);
    return outcome;
  }};
  const Walk walk = trials.search(Greedy(o));
  ASSERT_TRUE(walk.choice) << walk.problem;
  // 4,096 has 84 % utilisation where 16,384 has 93 %: the first with nine tenths of it.
  EXPECT_TRUE(walk.choice->values[0] == "4096" || walk.choice->values[0] == "8192");
  EXPECT_EQ(walk.choice->values[1], "0.01");
  RecordProperty("batch", walk.choice->values[0]);
  RecordProperty("accuracy", std::to_string(*walk.choice->score));
  RecordProperty("spent_s", std::to_string(spent));
  RecordProperty("grid_s", std::to_string(grid));
  EXPECT_LT(spent, 0.25 * grid);
}

TEST(ReplayTest, TheBatchOfTheBidirectionalNetwork) {
  const auto study = read_study("brnn_gru");
  if (!study) GTEST_SKIP() << "no measured tables: STOKER_SHARED, or ../shared";
  const auto figures = figures_of(*study);
  const auto choice = choose_batch(figures, {BatchBy::kUtilisation, 0.9});
  ASSERT_TRUE(choice);
  EXPECT_EQ(figures[choice->index].value, "4096");
}

}  // namespace
}  // namespace stoker::tune
