#include "input/data/image_pipeline.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "input/data/resample.h"
#include "system/clocks.h"

namespace stoker {
namespace {

/// ImageNet's channel means and deviations, as torchvision's references normalise.
constexpr float kMean[3] = {0.485F, 0.456F, 0.406F};
constexpr float kDeviation[3] = {0.229F, 0.224F, 0.225F};

/// RandomResizedCrop.get_params: ten tries, then the whole image with its aspect ratio clamped.
CropBox random_crop(int width, int height, Random& random) {
  const double area = static_cast<double>(width) * height;
  for (int tries = 0; tries < 10; ++tries) {
    const double target = area * random.uniform(0.08, 1.0);
    const double aspect = std::exp(random.uniform(std::log(3.0 / 4), std::log(4.0 / 3)));
    const int w = static_cast<int>(std::lround(std::sqrt(target * aspect)));
    const int h = static_cast<int>(std::lround(std::sqrt(target / aspect)));
    if (w <= 0 || h <= 0 || w > width || h > height) continue;
    return {static_cast<int>(random.below(width - w + 1)),
            static_cast<int>(random.below(height - h + 1)), w, h};
  }
  const double ratio = static_cast<double>(width) / height;
  int w = width, h = height;
  if (ratio < 3.0 / 4) h = std::min(height, static_cast<int>(std::lround(w / (3.0 / 4))));
  if (ratio > 4.0 / 3) w = std::min(width, static_cast<int>(std::lround(h * (4.0 / 3))));
  return {(width - w) / 2, (height - h) / 2, w, h};
}

/// Divides the CPU time of a thread among the stages of a record.
class Lap {
 public:
  explicit Lap(SampleRecord& record) : record_(record), mark_(thread_cpu_time()) {}
  void ends(Stage stage) {
    const Nanos now = thread_cpu_time();
    record_.stage[static_cast<std::size_t>(stage)] = now - mark_;
    mark_ = now;
  }

 private:
  SampleRecord& record_;
  Nanos mark_;
};

}  // namespace

std::string_view stage_name(Stage stage) {
  constexpr std::string_view kNames[kStageCount] = {"read", "decode",    "resize",
                                                    "flip", "to_tensor", "normalize"};
  return kNames[static_cast<std::size_t>(stage)];
}

Nanos SampleRecord::total() const {
  Nanos sum;
  for (const Nanos time : stage) sum += time;
  return sum;
}

struct ImagePipeline::State {
  explicit State(PipelineOptions given) : options(given), decoder(given.max_pixels) {}

  PictureFault read(const std::filesystem::path& path);
  void interleave(const RawPicture& raw);
  void transform(Random& random, SampleRecord& record);
  void flip();
  void to_tensor();
  void normalize();

  PipelineOptions options;
  PictureDecoder decoder;
  std::vector<std::uint8_t> file;  ///< grows only; `file_size` bytes are valid
  std::size_t file_size = 0;
  std::vector<std::uint8_t> picture, scaled;
  std::vector<float> tensor;
  ResampleBuffers buffers;
};

PictureFault ImagePipeline::State::read(const std::filesystem::path& path) {
  // O_NONBLOCK: what was a file when it was listed may be a pipe by now, and must not hang us.
  const int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (handle < 0) return errno == ENOENT ? PictureFault::kVanished : PictureFault::kUnreadable;
  struct stat info {};
  PictureFault fault = PictureFault::kNone;
  if (::fstat(handle, &info) != 0 || !S_ISREG(info.st_mode)) {
    fault = PictureFault::kUnreadable;
  } else if (info.st_size == 0) {
    fault = PictureFault::kEmpty;
  } else if (info.st_size > options.max_file.count()) {
    fault = PictureFault::kFileTooBig;
  }
  file_size = 0;
  if (fault == PictureFault::kNone) {
    const auto size = static_cast<std::size_t>(info.st_size);
    if (file.size() < size) file.resize(size);
    while (file_size < size) {
      const ssize_t got = ::read(handle, file.data() + file_size, size - file_size);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fault = PictureFault::kUnreadable;
      if (got <= 0) break;
      file_size += static_cast<std::size_t>(got);
    }
  }
  ::close(handle);
  return fault;
}

void ImagePipeline::State::interleave(const RawPicture& raw) {
  const std::size_t plane = static_cast<std::size_t>(raw.width) * raw.height;
  if (picture.size() < plane * 3) picture.resize(plane * 3);
  for (std::size_t c = 0; c < 3; ++c) {
    const std::uint8_t* from = raw.pixels.data() + (raw.channels == 3 ? c * plane : 0);
    for (std::size_t i = 0; i < plane; ++i) picture[i * 3 + c] = from[i];
  }
}

void ImagePipeline::State::flip() {
  const int size = options.image_size;
  for (int y = 0; y < size; ++y) {
    std::uint8_t* row = &scaled[static_cast<std::size_t>(y) * size * 3];
    for (int left = 0, right = size - 1; left < right; ++left, --right) {
      for (int c = 0; c < 3; ++c) std::swap(row[left * 3 + c], row[right * 3 + c]);
    }
  }
}

void ImagePipeline::State::to_tensor() {
  const std::size_t plane = static_cast<std::size_t>(options.image_size) * options.image_size;
  tensor.resize(plane * 3);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t i = 0; i < plane; ++i) {
      tensor[c * plane + i] = static_cast<float>(scaled[i * 3 + c]) * (1.0F / 255);
    }
  }
}

void ImagePipeline::State::normalize() {
  const std::size_t plane = static_cast<std::size_t>(options.image_size) * options.image_size;
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t i = 0; i < plane; ++i) {
      float& value = tensor[c * plane + i];
      value = (value - kMean[c]) / kDeviation[c];
    }
  }
}

ImagePipeline::ImagePipeline(PipelineOptions options) : state_(std::make_unique<State>(options)) {}
ImagePipeline::~ImagePipeline() = default;

const std::vector<float>& ImagePipeline::output() const { return state_->tensor; }

/// Crop to normalise, of the image that was decoded last.
void ImagePipeline::State::transform(Random& random, SampleRecord& record) {
  Lap lap(record);
  const CropBox box = random_crop(record.width, record.height, random);
  resample_bilinear({picture.data(), record.width, record.height}, box, options.image_size, buffers,
                    scaled);
  lap.ends(Stage::kResize);
  if (random.uniform() < 0.5) flip();
  lap.ends(Stage::kFlip);
  to_tensor();
  lap.ends(Stage::kToTensor);
  normalize();
  lap.ends(Stage::kNormalize);
}

PictureFault ImagePipeline::run(const std::filesystem::path& path, Random& random,
                                SampleRecord& record) {
  State& state = *state_;
  const Nanos start = thread_cpu_time();
  if (const PictureFault fault = state.read(path); fault != PictureFault::kNone) return fault;
  return run_content({state.file.data(), state.file_size}, thread_cpu_time() - start, random,
                     record);
}

PictureFault ImagePipeline::run_content(std::span<const std::uint8_t> file, Nanos read,
                                        Random& random, SampleRecord& record) {
  State& state = *state_;
  record = {};
  Lap lap(record);
  if (const PictureFault fault = state.decoder.decode(file, record, state.picture);
      fault != PictureFault::kNone) {
    return fault;
  }
  lap.ends(Stage::kDecode);
  record.bytes = Bytes(static_cast<std::int64_t>(file.size()));
  record.stage[static_cast<std::size_t>(Stage::kRead)] = read;
  state.transform(random, record);
  return PictureFault::kNone;
}

PictureFault ImagePipeline::run_raw(const RawPicture& raw, Nanos read, Random& random,
                                    SampleRecord& record) {
  const std::size_t expected =
      static_cast<std::size_t>(raw.width) * raw.height * static_cast<std::size_t>(raw.channels);
  if (raw.width <= 0 || raw.height <= 0 || raw.pixels.size() < expected)
    return PictureFault::kTruncated;
  record = {};
  record.raw = true;
  record.width = raw.width;
  record.height = raw.height;
  record.grey = raw.channels == 1;
  Lap lap(record);
  state_->interleave(raw);
  lap.ends(Stage::kDecode);
  record.bytes = Bytes(static_cast<std::int64_t>(raw.pixels.size()));
  record.stage[static_cast<std::size_t>(Stage::kRead)] = read;
  state_->transform(random, record);
  return PictureFault::kNone;
}

}  // namespace stoker
