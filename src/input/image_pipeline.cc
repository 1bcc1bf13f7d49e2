#include "input/image_pipeline.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <turbojpeg.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <utility>

#include "input/resample.h"

namespace stoker {
namespace {

/// ImageNet's channel means and deviations, as torchvision's references normalise.
constexpr float kMean[3] = {0.485F, 0.456F, 0.406F};
constexpr float kDeviation[3] = {0.229F, 0.224F, 0.225F};

Nanos clock_time(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return Nanos(static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec));
}

/// A progressive picture has a start-of-frame marker FFC2 (ITU T.81, table B.1).
bool is_progressive(const std::vector<std::uint8_t>& file, std::size_t size) {
  std::size_t at = 2;
  while (at + 4 <= size && file[at] == 0xFF) {
    const std::uint8_t marker = file[at + 1];
    if (marker == 0xC2) return true;
    if (marker == 0xDA || (marker >= 0xC0 && marker <= 0xC1)) return false;
    at += 2 + (static_cast<std::size_t>(file[at + 2]) << 8 | file[at + 3]);
  }
  return false;
}

/// RandomResizedCrop.get_params: ten tries, then the whole picture with its aspect ratio clamped.
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

}  // namespace

Nanos thread_cpu_time() { return clock_time(CLOCK_THREAD_CPUTIME_ID); }
Nanos wall_time() { return clock_time(CLOCK_MONOTONIC); }

std::string_view stage_name(Stage stage) {
  constexpr std::string_view kNames[kStageCount] = {"read", "decode",    "resize",
                                                    "flip", "to_tensor", "normalize"};
  return kNames[static_cast<std::size_t>(stage)];
}

std::string_view fault_name(PictureFault fault) {
  constexpr std::string_view kNames[kPictureFaults] = {"none",
                                                       "unreadable_picture",
                                                       "empty_picture",
                                                       "not_a_jpeg",
                                                       "truncated_picture",
                                                       "corrupt_picture",
                                                       "decompression_bomb",
                                                       "picture_file_too_big"};
  return kNames[static_cast<std::size_t>(fault)];
}

std::string_view fault_advice(PictureFault fault) {
  constexpr std::string_view kAdvice[kPictureFaults] = {
      "",
      "Pictures that could not be opened were left out; check their permissions.",
      "Empty picture files were left out; a loader would raise on them.",
      "Files named like JPEG hold something else and were left out.",
      "Pictures that end early were left out; Pillow raises on them by default.",
      "Pictures that the decoder refuses were left out.",
      "Pictures above the pixel limit (decompression bombs) were left out undecoded.",
      "Picture files above the size limit were left out."};
  return kAdvice[static_cast<std::size_t>(fault)];
}

Nanos SampleRecord::total() const {
  Nanos sum;
  for (const Nanos time : stage) sum += time;
  return sum;
}

struct ImagePipeline::State {
  explicit State(PipelineOptions given) : options(given), decoder(tjInitDecompress()) {}
  ~State() {
    if (decoder != nullptr) tjDestroy(decoder);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  PictureFault read(const std::filesystem::path& path);
  PictureFault decode(SampleRecord& record);
  void from_cmyk(std::size_t pixels);
  void flip();
  void to_tensor();
  void normalize();

  PipelineOptions options;
  tjhandle decoder;
  std::vector<std::uint8_t> file;  ///< grows only; `file_size` bytes are valid
  std::size_t file_size = 0;
  std::vector<std::uint8_t> cmyk, picture, scaled;
  std::vector<float> tensor;
  ResampleBuffers buffers;
};

PictureFault ImagePipeline::State::read(const std::filesystem::path& path) {
  const int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (handle < 0) return PictureFault::kUnreadable;
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

PictureFault ImagePipeline::State::decode(SampleRecord& record) {
  if (file_size < 4 || file[0] != 0xFF || file[1] != 0xD8) return PictureFault::kNotJpeg;
  int subsampling = 0, colorspace = 0;
  if (tjDecompressHeader3(decoder, file.data(), file_size, &record.width, &record.height,
                          &subsampling, &colorspace) != 0 ||
      record.width <= 0 || record.height <= 0) {
    return PictureFault::kCorrupt;
  }
  const std::int64_t pixels = static_cast<std::int64_t>(record.width) * record.height;
  if (pixels > options.max_pixels) return PictureFault::kTooManyPixels;
  record.bytes = Bytes(static_cast<std::int64_t>(file_size));
  record.progressive = is_progressive(file, file_size);
  record.grey = colorspace == TJCS_GRAY;
  record.cmyk = colorspace == TJCS_CMYK || colorspace == TJCS_YCCK;
  const auto count = static_cast<std::size_t>(pixels);
  if (picture.size() < count * 3) picture.resize(count * 3);
  if (record.cmyk && cmyk.size() < count * 4) cmyk.resize(count * 4);
  std::uint8_t* out = record.cmyk ? cmyk.data() : picture.data();
  const int failed =
      tjDecompress2(decoder, file.data(), file_size, out, record.width, 0, record.height,
                    record.cmyk ? TJPF_CMYK : TJPF_RGB, TJFLAG_ACCURATEDCT);
  if (failed != 0) {
    const std::string_view why = tjGetErrorStr2(decoder);
    if (why.find("remature end") != std::string_view::npos) return PictureFault::kTruncated;
    // Lesser warnings (stray bytes between segments) stop no loader.
    if (tjGetErrorCode(decoder) == TJERR_FATAL) return PictureFault::kCorrupt;
  }
  if (record.cmyk) from_cmyk(count);
  return PictureFault::kNone;
}

/// Adobe writes CMYK inverted: 255 is no ink.
void ImagePipeline::State::from_cmyk(std::size_t pixels) {
  for (std::size_t i = 0; i < pixels; ++i) {
    const std::uint8_t* ink = &cmyk[i * 4];
    for (std::size_t c = 0; c < 3; ++c) {
      picture[i * 3 + c] = static_cast<std::uint8_t>(ink[c] * ink[3] / 255);
    }
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

PictureFault ImagePipeline::run(const std::filesystem::path& path, Random& random,
                                SampleRecord& record) {
  State& state = *state_;
  record = {};
  Nanos mark = thread_cpu_time();
  const auto lap = [&](Stage stage) {
    const Nanos now = thread_cpu_time();
    record.stage[static_cast<std::size_t>(stage)] = now - mark;
    mark = now;
  };
  if (const PictureFault fault = state.read(path); fault != PictureFault::kNone) return fault;
  lap(Stage::kRead);
  if (const PictureFault fault = state.decode(record); fault != PictureFault::kNone) return fault;
  lap(Stage::kDecode);
  const CropBox box = random_crop(record.width, record.height, random);
  resample_bilinear({state.picture.data(), record.width, record.height}, box,
                    state.options.image_size, state.buffers, state.scaled);
  lap(Stage::kResize);
  if (random.uniform() < 0.5) state.flip();
  lap(Stage::kFlip);
  state.to_tensor();
  lap(Stage::kToTensor);
  state.normalize();
  lap(Stage::kNormalize);
  return PictureFault::kNone;
}

}  // namespace stoker
