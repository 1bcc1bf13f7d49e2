#include "input/findings/what_if.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/text.h"

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

std::size_t index(Stage stage) { return static_cast<std::size_t>(stage); }

/// Largest reduction of a side that leaves `short_side` pixels, of those that libjpeg can decode
/// at.
double draft_scale(const SampleRecord& record, int short_side) {
  constexpr std::array<double, 3> kScales{1.0 / 8, 1.0 / 4, 1.0 / 2};
  if (record.png || record.raw) return 1;
  for (const double scale : kScales) {
    if (std::min(record.width, record.height) * scale >= short_side) return scale;
  }
  return 1;
}

/// Share of decoding that goes with the pixels.
double pixel_share(const DecodeFit& fit, const SampleRecord& record) {
  const double pixels = fit.per_megapixel * record.megapixels();
  const double bytes = fit.per_megabyte * 1e-6 * static_cast<double>(record.bytes.count());
  return pixels + bytes > 0 ? pixels / (pixels + bytes) : 0;
}

/// Steps that a batch of bytes can take on the GPU, by the names of torchvision's transforms.
bool moves_to_gpu(const std::string& stage) {
  constexpr std::array<std::string_view, 10> kNames{"totensor",
                                                    "normalize",
                                                    "convertimagedtype",
                                                    "todtype",
                                                    "randomhorizontalflip",
                                                    "randomerasing",
                                                    "colorjitter",
                                                    "gaussianblur",
                                                    "randomgrayscale",
                                                    "randomverticalflip"};
  const std::string name = simplified(stage);
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

template <class Wanted>
double share_of(const PipelineProbe& probe, const Wanted& wanted) {
  double share = 0;
  for (const auto& stage : probe.stages) {
    if (wanted(stage.name)) share += stage.share;
  }
  return std::min(share, 1.0);
}

/// Images of floats, a byte each in what they were decoded to.
bool hands_over_float_pictures(const PipelineProbe& probe) {
  for (const char* shape : {"float32[3, ", "float32[1, ", "float32[4, "}) {
    if (probe.output.find(shape) != std::string::npos) return true;
  }
  return false;
}

void quarter(Bytes& bytes) { bytes = Bytes(bytes.count() / 4); }

}  // namespace

std::optional<SampleCost> smaller_pictures(const Probe& probe, int short_side,
                                           const SampleCost& like, const LoaderProfile& profile) {
  Probe smaller = probe;
  double before = 0;
  double after = 0;
  double bytes = 0, bytes_before = 0;
  for (SampleRecord& record : smaller.samples) {
    before += record.megapixels();
    bytes_before += static_cast<double>(record.bytes.count());
    record = shrunk(record, short_side);
    after += record.megapixels();
    bytes += static_cast<double>(record.bytes.count());
  }
  if (before <= 0 || after > kWorthwhile * before) return std::nullopt;
  smaller.dataset.mean_pixels *= after / before;
  smaller.dataset.mean_bytes = bytes / static_cast<double>(smaller.samples.size());
  smaller.dataset.total_bytes =
      Bytes(std::llround(static_cast<double>(smaller.dataset.total_bytes.count()) * bytes /
                         std::max(1.0, bytes_before)));
  return sample_cost_from_probe(smaller, profile, {like.output, like.tensors});
}

std::optional<SampleCost> draft_pictures(const Probe& probe, int short_side, const SampleCost& like,
                                         const LoaderProfile& profile) {
  Probe drafted = probe;
  double before = 0, after = 0;
  for (SampleRecord& record : drafted.samples) {
    if (record.png || record.raw) {  // only JPEG can be decoded at a part of its size
      before += record.megapixels();
      after += record.megapixels();
      continue;
    }
    const double scale = draft_scale(record, short_side), pixels = scale * scale;
    before += record.megapixels();
    const double kept = 1 - pixel_share(probe.decode, record) * (1 - pixels);
    Nanos& decode = record.stage[index(Stage::kDecode)];
    Nanos& resize = record.stage[index(Stage::kResize)];
    decode = decode * kept;
    resize = resize * pixels;
    record.width = static_cast<int>(std::lround(record.width * scale));
    record.height = static_cast<int>(std::lround(record.height * scale));
    after += record.megapixels();
  }
  if (before <= 0 || after > kWorthwhile * before) return std::nullopt;
  return sample_cost_from_probe(drafted, profile, {like.output, like.tensors});
}

SampleCost bytes_to_gpu(const Probe& probe, const SampleCost& like, const LoaderProfile& profile) {
  LoaderProfile without = profile;
  for (const Stage stage : {Stage::kFlip, Stage::kToTensor, Stage::kNormalize})
    without.stage[index(stage)] = {.constant_ms = 0, .ratio = 0, .per_megapixel_ms = 0};
  OutputShape shape{like.output, like.tensors};
  quarter(shape.bytes_per_sample);
  return sample_cost_from_probe(probe, without, shape);
}

SampleCost faster_decoder(const Probe& probe, double factor, const SampleCost& like,
                          const LoaderProfile& profile) {
  LoaderProfile faster = profile;
  StageCoefficients& decode = faster.stage[index(Stage::kDecode)];
  decode = {decode.constant_ms / factor, decode.ratio / factor, decode.per_megapixel_ms / factor};
  return sample_cost_from_probe(probe, faster, {like.output, like.tensors});
}

std::optional<SampleCost> bytes_to_gpu(const PipelineProbe& probe, const SampleCost& like) {
  const double share = share_of(probe, moves_to_gpu);
  if (share <= 0 || !hands_over_float_pictures(probe)) return std::nullopt;
  SampleCost cost = with_cpu_times(like, 1 - share);
  quarter(cost.output);
  for (BatchFacts& batch : cost.batches) {
    quarter(batch.bytes);
    batch.collate_shared = batch.collate_shared / 4;
    batch.collate_private = batch.collate_private / 4;
  }
  return cost;
}

std::optional<SampleCost> faster_decoder(const PipelineProbe& probe, double factor,
                                         const SampleCost& like) {
  const double share = share_of(probe, [](const std::string& name) {
    return simplified(name).find("decode") != std::string::npos;
  });
  if (share <= 0) return std::nullopt;
  return with_cpu_times(like, 1 - share * (1 - 1 / factor));
}

SampleCost packed_in_shards(SampleCost sample) {
  sample.cold_seek_ms = 0;
  sample.sequential = true;
  return sample;
}

}  // namespace stoker
