#include "input/probe/known_data.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

namespace stoker {
namespace {

/// A usual pipeline of images is known; what a user adds to it (stronger augmentation) is not.
constexpr double kPictureError = 0.5;
/// Pipelines of detectors (mosaics, boxes) and of speech differ more.
constexpr double kOtherError = 0.7;

constexpr std::string_view kCrop = "decode, random crop, flip, normalise (Pillow and torchvision)";
constexpr std::string_view kPixels =
    "a picture from the array, crop, flip, normalise (torchvision)";
constexpr std::string_view kResized =
    "decode, resize, flip, normalise; mosaics and boxes are not counted";
constexpr std::string_view kMel = "decode FLAC (soundfile), log-mel spectrogram on one thread";
constexpr std::string_view kWindow = "a window of a memory-mapped file of 16-bit tokens, twice";

// clang-format off
constexpr auto kTable = std::to_array<KnownData>({
    {"imagenet", "imagenet1k imagenet2012 ilsvrc ilsvrc2012 in1k", KnownKind::kPictures,
     1'281'167, 115'400, 469, 387, 0, kPictureError, kCrop,
     "ILSVRC 2012, training: 147.9 GB, 1,281,167 images of 469 x 387 pixels in the mean "
     "(image-net.org)"},
    {"imagenet100", "in100", KnownKind::kPictures,
     126'689, 115'400, 469, 387, 0, kPictureError, kCrop,
     "100 classes of ILSVRC 2012 (Tian et al., Contrastive Multiview Coding, 2020)"},
    {"places365", "places", KnownKind::kPictures,
     1'803'460, 14'000, 256, 256, 0, kPictureError, kCrop,
     "Places365-Standard, small images, training: 24 GB (places2.csail.mit.edu)"},
    {"food101", "", KnownKind::kPictures, 75'750, 47'000, 496, 475, 0, kPictureError, kCrop,
     "Food-101: 101,000 images, 5 GB, sides up to 512 (Bossard et al., 2014)"},
    {"coco", "coco2017 mscoco", KnownKind::kPictures,
     118'287, 163'000, 578, 484, 0, kOtherError, kResized,
     "COCO train2017: 118,287 images, 18 GiB, 578 x 484 pixels in the mean (cocodataset.org)"},
    {"cifar10", "cifar", KnownKind::kPixels, 50'000, 3'073, 32, 32, 0, kPictureError, kPixels,
     "CIFAR-10, training: 50,000 pictures of 32 x 32 (Krizhevsky, 2009)"},
    {"cifar100", "", KnownKind::kPixels, 50'000, 3'074, 32, 32, 0, kPictureError, kPixels,
     "CIFAR-100, training: 50,000 pictures of 32 x 32 (Krizhevsky, 2009)"},
    {"mnist", "fashionmnist", KnownKind::kPixels, 60'000, 785, 28, 28, 0, kPictureError, kPixels,
     "MNIST, training: 60,000 pictures of 28 x 28 (LeCun et al., 1998)"},
    {"librispeech", "librispeech960h libri", KnownKind::kRecordings, 281'241, 211'000, 0, 0, 12.3,
     kOtherError, kMel,
     "LibriSpeech, 960 hours of training: 281,241 utterances, 59.3 GB of FLAC (openslr.org/12)"},
    {"openwebtext-tokens", "openwebtext owt owttokens", KnownKind::kTokens,
     9'035'582'198, 2, 0, 0, 0,
     kOtherError, kWindow,
     "OpenWebText in GPT-2's tokens, train.bin: 9,035,582,198 tokens (nanoGPT, data/openwebtext)"},
    {"wikitext103-tokens", "wikitext103 wikitext", KnownKind::kTokens, 117'920'140, 2, 0, 0, 0,
     kOtherError, kWindow,
     "WikiText-103, training, in GPT-2's tokens: about 118 million (Merity et al., 2016)"},
    {"shakespeare-tokens", "shakespeare", KnownKind::kTokens, 301'966, 2, 0, 0, 0, kOtherError,
     kWindow,
     "tiny shakespeare in GPT-2's tokens, train.bin: 301,966 (nanoGPT, data/shakespeare)"},
});
// clang-format on

/// What our own stages take on the machine of the loader profile, CPU time: `stoker probe` of 284
/// images of ImageNet (0.2 megapixels, 102 KiB in the mean) at 224 pixels.
constexpr double kReadMs = 0.036;
constexpr double kDecodeMsPerMegapixel = 1.5, kDecodeMsPerMegabyte = 6.4;
constexpr double kResizeMsPerMegapixel = 2.0, kResizeNsPerPixel = 5, kFlipNsPerPixel = 0.5;
/// What to_tensor takes of to_tensor and normalize together.
constexpr double kToTensorShare = 0.35;

/// One second of speech at 16 kHz: FLAC by soundfile, and a log-mel spectrogram of 80 bands
/// (torch.stft of 400 points every 160, one thread, PyTorch 2.13); best of nine on 12 seconds.
constexpr double kFlacMsPerSecond = 0.12, kMelMsPerSecond = 0.16;

/// Two slices of a numpy.memmap, cast to int64 and made tensors (NumPy 2.4, PyTorch 2.13, a file in
/// the page cache, best of nine): 4.9, 5.5 and 6.9 us at 128, 1024 and 4096 tokens.
constexpr double kWindowUs = 4.8, kTokenNs = 0.55;
constexpr double kBytesOfToken = 8;  // in a batch

Nanos milliseconds(double ms) { return kMillisecond * ms; }

Nanos picture_cost(const KnownData& data, double side, const LoaderProfile& profile) {
  SampleRecord record;
  record.width = data.width;
  record.height = data.height;
  record.raw = data.kind == KnownKind::kPixels;
  const double pixels = side * side;
  const auto stage = [&](Stage s) -> Nanos& { return record.stage[static_cast<std::size_t>(s)]; };
  stage(Stage::kRead) = milliseconds(kReadMs);
  stage(Stage::kDecode) = milliseconds(kDecodeMsPerMegapixel * record.megapixels() +
                                       kDecodeMsPerMegabyte * data.bytes * 1e-6);
  stage(Stage::kResize) =
      milliseconds(kResizeMsPerMegapixel * record.megapixels()) + Nanos(kResizeNsPerPixel * pixels);
  stage(Stage::kFlip) = Nanos(kFlipNsPerPixel * pixels);
  const Nanos both(profile.native_ns_per_pixel * pixels);
  stage(Stage::kToTensor) = both * kToTensorShare;
  stage(Stage::kNormalize) = both * (1 - kToTensorShare);
  return loader_cost(profile, record, 1);
}

void take_tokens(const KnownData& data, OutputShape output, SampleCost& cost) {
  const double tensors = std::max(1, output.tensors);
  const double length = std::max(
      1.0, static_cast<double>(output.bytes_per_sample.count()) / (kBytesOfToken * tensors));
  cost.cpu = {Nanos(1e3 * kWindowUs + kTokenNs * length)};
  cost.read_bytes = data.bytes * length;
  cost.dataset_samples =
      std::max<std::int64_t>(1, std::llround(static_cast<double>(data.samples) / length));
  cost.dataset_bytes = Bytes(std::llround(data.bytes * static_cast<double>(data.samples)));
}

}  // namespace

const KnownData* known_data(std::string_view name) {
  const std::string wanted = simplified(name);
  const auto answers = [&](const KnownData& data) {
    if (simplified(data.name) == wanted) return true;
    const std::vector<std::string> aliases = split(data.aliases, ' ');
    return std::find(aliases.begin(), aliases.end(), wanted) != aliases.end();
  };
  const auto* found = std::find_if(kTable.begin(), kTable.end(), answers);
  return wanted.empty() || found == kTable.end() ? nullptr : found;
}

std::vector<std::string> known_data_names() {
  std::vector<std::string> names;
  for (const KnownData& data : kTable) names.emplace_back(data.name);
  return names;
}

std::vector<std::string> known_data_words() {
  std::vector<std::string> names = known_data_names();
  for (const KnownData& data : kTable) {
    for (std::string& alias : split(data.aliases, ' ')) {
      if (!alias.empty()) names.push_back(std::move(alias));
    }
  }
  return names;
}

SampleCost sample_cost_known(const KnownData& data, std::int64_t side, const LoaderProfile& profile,
                             OutputShape output) {
  SampleCost cost;
  cost.known = true;
  cost.output = output.bytes_per_sample;
  cost.tensors = output.tensors;
  cost.transport = profile.transport;
  cost.dataset_samples = data.samples;
  cost.read_bytes = data.kind == KnownKind::kPixels ? 0 : data.bytes;
  cost.dataset_bytes = Bytes(std::llround(data.bytes * static_cast<double>(data.samples)));
  switch (data.kind) {
    case KnownKind::kPictures:
    case KnownKind::kPixels:
      cost.cpu = {picture_cost(
          data, side > 0 ? static_cast<double>(side) : static_cast<double>(data.width), profile)};
      break;
    case KnownKind::kRecordings:
      cost.cpu = {milliseconds((kFlacMsPerSecond + kMelMsPerSecond) * data.seconds)};
      break;
    case KnownKind::kTokens:
      take_tokens(data, output, cost);
      break;
  }
  cost.band = {data.error, data.error};
  cost.basis = "profile of " + std::string(data.name) +
               ", not measured here: " + std::string(data.source) + "; " + std::string(data.how) +
               ": " + human_time(cost.cpu.front()) + " of a core a sample";
  return cost;
}

}  // namespace stoker
