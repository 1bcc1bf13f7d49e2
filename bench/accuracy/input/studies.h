#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "accuracy/common/bench.h"
#include "forecast/forecast.h"

/// Internal to the measures of studies.csv (studies.cc).
namespace stoker::accuracy::studies {

/// A float picture of 224 px with its label.
inline constexpr std::int64_t kPictureBytes = 3 * 224 * 224 * 4 + 8;

/// The number that follows `word` in the text: "workers 64 batch 160"; 0: none.
[[nodiscard]] double number_after(std::string_view text, std::string_view word);

/// A table's rows of one study; an empty number: of all its tables.
[[nodiscard]] std::vector<const CsvRow*> rows_of(const Table& table, std::string_view study,
                                                 std::string_view number);

/// The captured fp32 steps that ship, read once each.
class Zoo {
 public:
  /// The study of that name, or the only one whose name begins with it.
  [[nodiscard]] Result<const Step*> step(const std::string& name);

 private:
  static Result<std::filesystem::path> file_of(const std::string& name);
  std::map<std::string, Step> steps_;
};

/// One GPU of the row's machine, its model in fp32, ImageNet's pictures, a host with cores to
/// spare.
[[nodiscard]] Result<Scenario> scenario_of(const Bench& bench, Zoo& zoo, const CsvRow& row,
                                           std::int64_t batch);

[[nodiscard]] std::vector<Measure> pinned_memory(Bench& bench, Zoo& zoo, const Table& table);
[[nodiscard]] std::vector<Measure> thread_scaling(Bench& bench, Zoo& zoo, const Table& table);

}  // namespace stoker::accuracy::studies
