#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/units.h"
#include "input/data/picture_decoder.h"
#include "input/data/picture_fault.h"

namespace stoker {

/// What happens to one image on its way into a batch, in order.
enum class Stage : std::uint8_t { kRead, kDecode, kResize, kFlip, kToTensor, kNormalize };
inline constexpr std::size_t kStageCount = 6;
[[nodiscard]] std::string_view stage_name(Stage stage);

template <class T>
using PerStage = std::array<T, kStageCount>;

struct PipelineOptions {
  int image_size = 224;  ///< pixels a side of what the model gets
  /// Larger images are refused from their header, undecoded: the limit of Pillow's warning about
  /// decompression bombs (Image.MAX_IMAGE_PIXELS).
  std::int64_t max_pixels = 89'478'485;
  Bytes max_file = 256 * kMiB;
};

/// What one sample cost, on the CPU clock of the thread that handled it.
struct SampleRecord : PictureFacts {
  Bytes bytes;       ///< read from storage for it
  bool raw = false;  ///< pixels without an encoding (CIFAR, idx): nothing to decode
  PerStage<Nanos> stage{};

  [[nodiscard]] double megapixels() const { return 1e-6 * width * height; }
  [[nodiscard]] Nanos total() const;
};

/// Pixels as a record of bytes holds them.
struct RawPicture {
  std::span<const std::uint8_t> pixels;  ///< channels * height * width bytes
  int width = 0, height = 0;
  int channels = 3;  ///< planes, one after the other; 1 (grey) or 3
};

/// The usual training transform in C++: read, decode JPEG or PNG to RGB, RandomResizedCrop (area
/// 8-100 %, aspect 3:4 to 4:3, bilinear with antialiasing as Pillow computes it), horizontal flip
/// with probability 1/2, planar float in [0, 1], normalise. Not thread-safe: one pipeline a thread;
/// buffers are reused.
class ImagePipeline {
 public:
  explicit ImagePipeline(PipelineOptions options);
  ~ImagePipeline();
  ImagePipeline(const ImagePipeline&) = delete;
  ImagePipeline& operator=(const ImagePipeline&) = delete;

  /// Runs all stages; on kNone `record` is filled. The random numbers decide crop and flip.
  PictureFault run(const std::filesystem::path& path, Random& random, SampleRecord& record);

  /// Runs all stages over an image file's content that lies in memory and took `read` to get there.
  PictureFault run_content(std::span<const std::uint8_t> file, Nanos read, Random& random,
                           SampleRecord& record);

  /// Runs all stages over raw pixels; decoding is putting the colours of a pixel side by side.
  PictureFault run_raw(const RawPicture& raw, Nanos read, Random& random, SampleRecord& record);

  /// The normalised planar image (3 x size x size) of the last run, for tests.
  [[nodiscard]] const std::vector<float>& output() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
