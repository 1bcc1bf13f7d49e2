#include "lower/gpu/workspace.h"

#include <charconv>
#include <string>
#include <system_error>
#include <vector>

#include "base/text.h"

namespace stoker {
namespace {

constexpr Bytes kCublasDefault{2 * 4096 * 1024 + 8 * 16 * 1024};
constexpr Bytes kCublasHopper{32 << 20};
constexpr Bytes kRocblas{32 << 20}, kRocblasCdna3{128 << 20};
/// Below this many input channels cuDNN's direct kernels need no workspace (first layers of image
/// models).
constexpr std::int64_t kFewChannels = 4;

/// No workspace is larger than this: 1 TiB, in KiB.
constexpr std::int64_t kMostKiB = std::int64_t{1} << 30;

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < 0) return std::nullopt;
  return value;
}

}  // namespace

Bytes cublas_workspace(const Gpu& gpu) {
  if (gpu.vendor == Vendor::kAmd) {
    const bool large = gpu.chip.starts_with("gfx94") || gpu.chip.starts_with("gfx95");
    return large ? kRocblasCdna3 : kRocblas;
  }
  return gpu.architecture >= Architecture::kHopper && gpu.architecture <= Architecture::kBlackwell
             ? kCublasHopper
             : kCublasDefault;
}

Bytes cublas_workspace(const Gpu& gpu, const Job& job) {
  return job.cublas_workspace.value_or(cublas_workspace(gpu));
}

std::optional<Bytes> cublaslt_workspace(const Gpu& gpu, const Job& job) {
  if (gpu.vendor != Vendor::kNvidia) return std::nullopt;
  return job.cublaslt_workspace;
}

Result<Bytes> parse_cublas_workspace_config(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorCode::kUsage,
                "\"" + std::string(text) +
                    "\" is no workspace configuration; write :KiB:count pairs, as :4096:2:16:8",
                "CUBLAS_WORKSPACE_CONFIG");
  };
  if (text.empty() || text.front() != ':') return bad();
  const std::vector<std::string> numbers = split(text.substr(1), ':');
  if (numbers.empty() || numbers.size() % 2 != 0) return bad();
  Bytes total{0};
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    const auto size = whole_number(numbers[i]);
    const auto count = whole_number(numbers[i + 1]);
    if (!size || !count || (*count > 0 && *size > kMostKiB / *count)) return bad();
    total += kKiB * (*size * *count);
    if (total > kKiB * kMostKiB) return bad();
  }
  return total;
}

Result<Bytes> parse_cublaslt_workspace_size(std::string_view text) {
  const auto size = whole_number(text);
  if (!size || *size > kMostKiB) {
    return fail(ErrorCode::kUsage,
                "\"" + std::string(text) + "\" is no size; write a whole number of KiB, as 4096",
                "CUBLASLT_WORKSPACE_SIZE");
  }
  return kKiB * *size;
}

std::optional<Bytes> convolution_workspace(const ConvolutionShape& shape, Bytes input, Bytes output,
                                           Bytes weight, CudnnProfile profile) {
  const std::int64_t taps = shape.kernel[0] * shape.kernel[1] * shape.kernel[2];
  const bool depthwise = shape.groups > 1 && shape.groups == shape.in_channels;
  if (profile == CudnnProfile::kDefault) {
    if (shape.groups != 1) return std::nullopt;
  } else if (depthwise || taps == 1 || shape.in_channels <= kFewChannels ||
             shape.pass == Pass::kForward) {
    return std::nullopt;
  }
  return input + output + weight;
}

}  // namespace stoker
