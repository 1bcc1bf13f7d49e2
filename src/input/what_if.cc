#include "input/what_if.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

constexpr double kWorthwhile = 0.9;  ///< share of the pixels above which nothing is gained

SampleRecord shrunk(const SampleRecord& from, int short_side) {
  SampleRecord record = from;
  const double side = std::min(from.width, from.height);
  if (side <= short_side) return record;
  const double scale = short_side / side;
  record.width = static_cast<int>(std::lround(from.width * scale));
  record.height = static_cast<int>(std::lround(from.height * scale));
  const double pixels = scale * scale;
  record.bytes = Bytes(static_cast<std::int64_t>(static_cast<double>(from.bytes.count()) * pixels));
  for (const Stage stage : {Stage::kRead, Stage::kDecode, Stage::kResize}) {
    Nanos& time = record.stage[static_cast<std::size_t>(stage)];
    time = Nanos(time.count() * pixels);
  }
  return record;
}

}  // namespace

std::optional<SampleCost> smaller_pictures(const Probe& probe, int short_side,
                                           const SampleCost& like, const LoaderProfile& profile) {
  Probe smaller = probe;
  double before = 0;
  double after = 0;
  double bytes = 0;
  for (SampleRecord& record : smaller.samples) {
    before += record.megapixels();
    record = shrunk(record, short_side);
    after += record.megapixels();
    bytes += static_cast<double>(record.bytes.count());
  }
  if (before <= 0 || after > kWorthwhile * before) return std::nullopt;
  smaller.dataset.mean_pixels *= after / before;
  smaller.dataset.mean_bytes = bytes / static_cast<double>(smaller.samples.size());
  smaller.dataset.total_bytes = Bytes(static_cast<std::int64_t>(
      smaller.dataset.mean_bytes * static_cast<double>(smaller.dataset.files)));
  return sample_cost_from_probe(smaller, profile, {like.output, like.tensors});
}

}  // namespace stoker
