#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "observe/sample/sample.h"

namespace stoker {

/// Reads what a training loop writes about itself, as it is being written: an observation
/// (docs/reference/observation-file.md) or the lines of `stoker.report` (docs/guide/sweeping.md).
/// The first bytes tell which. Pieces may end anywhere; a line that is damaged is passed over.
///
/// Thousands of steps a second may come by, so a row is split by hand: it holds whole numbers and
/// known words only.
class ToldSteps {
 public:
  /// Steps that began before `since_ns` on CLOCK_MONOTONIC were not watched, and do not count.
  explicit ToldSteps(std::int64_t since_ns) : since_ns_(since_ns) {}

  void take(std::string_view bytes);
  /// What follows does not follow what was taken: the reader goes on with the next block.
  void skip();

  /// Whether the first line was that of a file of ours.
  [[nodiscard]] bool known() const { return kind_ != ToldKind::kNothing; }
  /// Whether the first line was something else.
  [[nodiscard]] bool foreign() const { return foreign_; }
  /// Steps that count: without those that warm up, as `stoker observation` counts.
  [[nodiscard]] Told told() const;

 private:
  struct Row {
    std::int64_t start = 0, whole = 0, total = 0, wait = 0, samples = 0;
    bool train = true, ended = true;
  };
  void line(std::string_view text);
  void header(std::string_view text);
  void row(std::string_view text);
  void end_block();
  void count(const Row& row);
  void report(std::string_view text);

  std::int64_t since_ns_;
  ToldKind kind_ = ToldKind::kNothing;
  bool foreign_ = false, skipping_ = false;
  std::string rest_;  ///< a line that has not ended
  std::vector<int> columns_;
  std::vector<Row> block_;
  std::int64_t block_clock_ = 0;
  std::size_t block_rows_ = 0;
  std::vector<Row> first_;   ///< training steps that may be warm-up
  bool from_first_ = false;  ///< the loop's first step was watched
  Told sum_;
  std::int64_t trained_ = 0;
  double report_from_ = -1;
  std::int64_t report_step_ = 0;
};

}  // namespace stoker
