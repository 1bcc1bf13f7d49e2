#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "input/random.h"

namespace stoker {

/// What happens to one picture on its way into a batch, in order.
enum class Stage : std::uint8_t { kRead, kDecode, kResize, kFlip, kToTensor, kNormalize };
inline constexpr std::size_t kStageCount = 6;
[[nodiscard]] std::string_view stage_name(Stage stage);

template <class T>
using PerStage = std::array<T, kStageCount>;

struct PipelineOptions {
  int image_size = 224;  ///< pixels a side of what the model gets
  /// Larger pictures are refused from their header, undecoded: the limit of Pillow's warning about
  /// decompression bombs (Image.MAX_IMAGE_PIXELS).
  std::int64_t max_pixels = 89'478'485;
  Bytes max_file = 256 * kMiB;
};

/// What one picture cost, on the CPU clock of the thread that handled it.
struct SampleRecord {
  Bytes bytes;  ///< of the file
  int width = 0, height = 0;
  bool progressive = false, grey = false, cmyk = false;
  PerStage<Nanos> stage{};

  [[nodiscard]] double megapixels() const { return 1e-6 * width * height; }
  [[nodiscard]] Nanos total() const;
};

/// Why a picture could not be used.
enum class PictureFault : std::uint8_t {
  kNone,
  kUnreadable,
  kEmpty,
  kNotJpeg,
  kTruncated,
  kCorrupt,
  kTooManyPixels,
  kFileTooBig
};
inline constexpr std::size_t kPictureFaults = 8;
/// Stable counter name and advice for Diagnostics.
[[nodiscard]] std::string_view fault_name(PictureFault fault);
[[nodiscard]] std::string_view fault_advice(PictureFault fault);

/// The usual training transform in C++: read, decode to RGB, RandomResizedCrop (area 8-100 %,
/// aspect 3:4 to 4:3, bilinear with antialiasing as Pillow computes it), horizontal flip with
/// probability 1/2, planar float in [0, 1], normalise. Not thread-safe: one pipeline a thread;
/// buffers are reused.
class ImagePipeline {
 public:
  explicit ImagePipeline(PipelineOptions options);
  ~ImagePipeline();
  ImagePipeline(const ImagePipeline&) = delete;
  ImagePipeline& operator=(const ImagePipeline&) = delete;

  /// Runs all stages; on kNone `record` is filled. The random numbers decide crop and flip.
  PictureFault run(const std::filesystem::path& path, Random& random, SampleRecord& record);

  /// The normalised planar picture (3 x size x size) of the last run, for tests.
  [[nodiscard]] const std::vector<float>& output() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// CPU time that this thread has used so far.
[[nodiscard]] Nanos thread_cpu_time();
/// Monotonic wall clock.
[[nodiscard]] Nanos wall_time();

}  // namespace stoker
