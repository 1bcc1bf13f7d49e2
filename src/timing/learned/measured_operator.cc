#include "timing/learned/measured_operator.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "lower/cpu/cpu_attention.h"
#include "lower/gpu/attention.h"
#include "operators/measured_kind.h"
#include "timing/common/data_sheet.h"

namespace stoker {
namespace {

constexpr std::int64_t kLargestSize = 1LL << 40;
/// Cards boost beyond the clock of their data sheet: an RTX 3090 runs at 1.9 GHz and more against
/// 1.695. Memory does not.
constexpr double kClockHeadroom = 0.15;
constexpr double kMemoryHeadroom = 0.03;
constexpr double kCpuHeadroom = 1;
/// What instructions for half precision may gain over FP32's on a CPU, whose data sheet speaks of
/// FP32 alone: AVX-512 BF16 2, AMX 16 (1,024 operations of a core in a clock in place of 64; Intel
/// 64 and IA-32 Optimization Reference Manual, chapter 20).
constexpr double kHalfOnCpu = 16;
/// Winograd's F(4x4, 3x3) saves 4 of 4 multiplications of 16 outputs (Lavin, Gray 2016); FFT saves
/// about as much on larger filters.
constexpr double kFastConvolution = 4;
/// Timed again and again, operands of up to twice the L2 are served by it in part.
constexpr double kWarmShare = 2;

/// Reads sizes by name.
class GivenSizes {
 public:
  GivenSizes(const MeasuredOperator& measured, const MeasuredKind& kind)
      : measured_(measured), kind_(kind) {}

  std::int64_t operator[](std::string_view name) const {
    const auto given = measured_.sizes.find(std::string(name));
    if (given != measured_.sizes.end()) return given->second;
    const auto known = std::ranges::find(kind_.sizes, name, &MeasuredSize::name);
    return known == kind_.sizes.end() ? 1 : known->when_absent;
  }
  [[nodiscard]] double number(std::string_view name) const {
    return static_cast<double>((*this)[name]);
  }

 private:
  const MeasuredOperator& measured_;
  const MeasuredKind& kind_;
};

struct Precisions {
  std::string_view name;
  DType dtype;
};
constexpr std::array kPrecisions{Precisions{"fp32", DType::kF32}, Precisions{"tf32", DType::kF32},
                                 Precisions{"fp16", DType::kF16}, Precisions{"bf16", DType::kBf16}};

/// Unit for products and convolutions; what the GPU lacks is for the device model to replace.
MathUnit unit_of(std::string_view precision, bool product) {
  if (!product) return MathUnit::kFp32;
  if (precision == "tf32") return MathUnit::kTf32Tensor;
  if (precision == "fp16") return MathUnit::kFp16Tensor;
  if (precision == "bf16") return MathUnit::kBf16Tensor;
  return MathUnit::kFp32;
}

void set_bytes(Kernel& kernel, double read_elements, double written_elements) {
  const int size = size_of(kernel.dtype);
  kernel.read = Bytes(static_cast<std::int64_t>(read_elements * size));
  kernel.written = Bytes(static_cast<std::int64_t>(written_elements * size));
}

void fill_gemm(const GivenSizes& s, Kernel& kernel) {
  GemmShape shape{s["batch"], s["m"], s["n"], s["k"], s["transpose_a"] > 0, s["transpose_b"] > 0};
  const double b = static_cast<double>(shape.batch), m = static_cast<double>(shape.m),
               n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  kernel.kernel_class = KernelClass::kGemm;
  kernel.flops = Flops(2 * b * m * n * k);
  kernel.elements = shape.batch * shape.m * shape.n;
  set_bytes(kernel, b * (m * k + k * n) + (s["bias"] > 0 ? n : 0), b * m * n);
  kernel.shape = shape;
}

Status fill_convolution(const GivenSizes& s, const MeasuredOperator& measured, Kernel& kernel) {
  ConvolutionShape c;
  c.batch = s["batch"], c.in_channels = s["in_channels"], c.out_channels = s["out_channels"];
  c.groups = s["groups"];
  c.channels_last = s["channels_last"] > 0;
  const char* const sides[] = {"height", "width"};
  for (std::size_t i = 0; i < 2; ++i) {
    c.in[i] = s[sides[i]];
    c.kernel[i] = s["kernel"], c.stride[i] = s["stride"], c.dilation[i] = s["dilation"];
    const std::int64_t reach = c.dilation[i] * (c.kernel[i] - 1) + 1;
    c.out[i] = (c.in[i] + 2 * s["padding"] - reach) / c.stride[i] + 1;
    if (c.in[i] + 2 * s["padding"] < reach) {
      return fail(ErrorCode::kBadInput, "its filter is larger than the padded image",
                  measured.where);
    }
  }
  if (c.in_channels % c.groups != 0 || c.out_channels % c.groups != 0) {
    return fail(ErrorCode::kBadInput, "its channels cannot be divided into the groups",
                measured.where);
  }
  c.pass = measured.pass == "backward_input"    ? Pass::kBackwardInput
           : measured.pass == "backward_weight" ? Pass::kBackwardWeight
                                                : Pass::kForward;
  const auto count = [](auto... factors) { return (1.0 * ... * static_cast<double>(factors)); };
  const double in = count(c.batch, c.in_channels, c.in[0], c.in[1]);
  const double out = count(c.batch, c.out_channels, c.out[0], c.out[1]);
  const double taps = count(c.kernel[0], c.kernel[1]) * static_cast<double>(c.in_channels) /
                      static_cast<double>(c.groups);
  const double weight = static_cast<double>(c.out_channels) * taps;
  const bool depthwise = c.groups > 1 && c.groups == c.in_channels;
  kernel.kernel_class = depthwise ? KernelClass::kDepthwiseConvolution : KernelClass::kConvolution;
  kernel.flops = Flops(2 * out * taps);
  const double written = c.pass == Pass::kForward         ? out
                         : c.pass == Pass::kBackwardInput ? in
                                                          : weight;
  kernel.elements = static_cast<std::int64_t>(written);
  set_bytes(kernel, in + out + weight - written, written);
  kernel.shape = c;
  return {};
}

/// `choose_backend`: how the device runs an attention of this shape and type.
template <class ChooseBackend>
void fill_attention(const GivenSizes& s, bool backward, const ChooseBackend& choose_backend,
                    Kernel& kernel) {
  AttentionShape a;
  a.batch = s["batch"], a.heads = s["heads"], a.head_dim = s["head_dim"];
  a.query_length = s["query_length"], a.key_length = s["key_length"];
  a.causal = s["causal"] > 0, a.backward = backward;
  a.backend = choose_backend(a, kernel.dtype);
  const double heads = static_cast<double>(a.batch * a.heads), d = static_cast<double>(a.head_dim);
  const double q = static_cast<double>(a.query_length), k = static_cast<double>(a.key_length);
  kernel.kernel_class = KernelClass::kAttention;
  kernel.flops = Flops((backward ? 10 : 4) * heads * q * k * d / (a.causal ? 2 : 1));
  kernel.elements = static_cast<std::int64_t>(heads * q * d);
  const double once = heads * d * (q + k);  // queries and results; keys and values
  set_bytes(kernel, backward ? 4 * once - 2 * heads * d * k : 2 * once - heads * d * q,
            backward ? 2 * once - heads * d * q : heads * d * q);
  kernel.shape = a;
}

/// Rows and element-wise operators: so many words for each element.
void fill_words(const MeasuredKind& kind, const GivenSizes& s, bool backward, Kernel& kernel) {
  const MeasuredWords& words = kind.words;
  const bool rows = kind.rule == MeasuredRule::kRows;
  const double elements = rows ? s.number("rows") * s.number("width") : s.number("elements");
  double read = backward ? words.read_backward : words.read;
  double written = backward ? words.written_backward : words.written;
  double flops = words.flops;
  if (!words.read_size.empty()) read = s.number(words.read_size);
  if (!words.written_size.empty()) written = s.number(words.written_size);
  if (kind.rule == MeasuredRule::kWindows) {
    // Elements of the result; windows that overlap are read from caches.
    read = s.number("stride") * s.number("stride");
    flops = s.number("kernel") * s.number("kernel");
  }
  kernel.kernel_class = kind.kernel_class;
  kernel.elements = static_cast<std::int64_t>(elements);
  kernel.flops = Flops(flops * elements);
  set_bytes(kernel, read * elements, written * elements);
  if (backward) kernel.launches = words.launches_backward;
  if (rows) kernel.shape = RowShape{s["rows"], s["width"]};
}

/// The kind of the row; refuses one that there is not.
Result<const MeasuredKind*> kind_of(const MeasuredOperator& measured) {
  if (const MeasuredKind* kind = measured_kind(measured.kind)) return kind;
  std::vector<std::string> kinds;
  for (const MeasuredKind& kind : measured_kinds()) kinds.emplace_back(kind.name);
  return fail(
      ErrorCode::kBadInput,
      "no kind of operator is called \"" + measured.kind + "\"" + suggestion(measured.kind, kinds),
      measured.where);
}

bool is_acceptable(const MeasuredSize& size, std::optional<std::int64_t> given) {
  switch (size.use) {
    case SizeUse::kNeeded:
      return given.value_or(0) > 0;
    case SizeUse::kCount:
      return given.value_or(1) > 0;
    case SizeUse::kAmount:
    case SizeUse::kFlag:
      break;
  }
  return true;
}

Status check_sizes(const MeasuredOperator& measured, const MeasuredKind& kind) {
  for (const auto& [name, value] : measured.sizes) {
    std::vector<std::string> names;
    for (const MeasuredSize& size : kind.sizes) names.emplace_back(size.name);
    if (std::ranges::find(names, name) == names.end()) {
      return fail(ErrorCode::kBadInput,
                  "a " + measured.kind + " has no size \"" + name + "\"" + suggestion(name, names),
                  measured.where);
    }
    if (value < 0 || value > kLargestSize) {
      return fail(ErrorCode::kBadInput, name + " = " + std::to_string(value) + " cannot be",
                  measured.where);
    }
  }
  for (const MeasuredSize& size : kind.sizes) {
    const auto found = measured.sizes.find(std::string(size.name));
    const auto given = found == measured.sizes.end() ? std::nullopt : std::optional(found->second);
    if (is_acceptable(size, given)) continue;
    return fail(ErrorCode::kBadInput,
                measured.kind + " needs " + std::string(size.name) + " of at least 1",
                measured.where);
  }
  return {};
}

Status check_words(const MeasuredOperator& measured, const MeasuredKind& kind) {
  const auto known = std::ranges::find(kPrecisions, measured.precision, &Precisions::name);
  if (known == kPrecisions.end()) {
    return fail(ErrorCode::kBadInput,
                "\"" + measured.precision + "\" is no precision: use fp32, tf32, fp16 or bf16",
                measured.where);
  }
  const bool convolution = kind.rule == MeasuredRule::kConvolution;
  const std::vector<std::string> passes =
      convolution ? std::vector<std::string>{"forward", "backward_input", "backward_weight"}
                  : std::vector<std::string>{"forward", "backward"};
  if (std::ranges::find(passes, measured.pass) == passes.end()) {
    return fail(
        ErrorCode::kBadInput,
        "\"" + measured.pass + "\" is no pass of a " + measured.kind + ": use " +
            (convolution ? "forward, backward_input or backward_weight" : "forward or backward"),
        measured.where);
  }
  return {};
}

/// What a convolution's fast algorithms save of its arithmetic.
double saving_of(const Kernel& kernel) {
  const auto* c = std::get_if<ConvolutionShape>(&kernel.shape);
  return c != nullptr && c->kernel[0] > 1 && c->groups == 1 ? kFastConvolution : 1;
}

template <class ChooseBackend>
Result<Kernel> kernel_with(const MeasuredOperator& measured, const ChooseBackend& choose_backend) {
  const MeasuredKind& kind = *TRY(kind_of(measured));
  TRY(check_sizes(measured, kind));
  TRY(check_words(measured, kind));
  const GivenSizes sizes(measured, kind);
  Kernel kernel;
  const bool words = kind.rule == MeasuredRule::kRows || kind.rule == MeasuredRule::kWords ||
                     kind.rule == MeasuredRule::kWindows;
  kernel.dtype = std::ranges::find(kPrecisions, measured.precision, &Precisions::name)->dtype;
  kernel.unit = unit_of(measured.precision, !words);
  kernel.phase = measured.pass == "forward" ? StepPhase::kForward : StepPhase::kBackward;
  const bool backward = measured.pass == "backward";
  switch (kind.rule) {
    case MeasuredRule::kProduct:
      fill_gemm(sizes, kernel);
      break;
    case MeasuredRule::kConvolution:
      TRY(fill_convolution(sizes, measured, kernel));
      break;
    case MeasuredRule::kAttention:
      fill_attention(sizes, backward, choose_backend, kernel);
      break;
    case MeasuredRule::kRows:
    case MeasuredRule::kWords:
    case MeasuredRule::kWindows:
      fill_words(kind, sizes, backward, kernel);
      break;
  }
  return kernel;
}

std::string figures(const char* format, double a, double b, double c) {
  char text[160];
  std::snprintf(text, sizeof text, format, a, b, c);
  return text;
}

/// `least`: what the device's data sheet allows.
Status check_time(const MeasuredOperator& measured, const Kernel& kernel, const DeviceFacts& device,
                  Micros least, Micros launch_floor) {
  const Micros time(measured.time_us);
  if (!std::isfinite(time.count()) || time <= Micros(0)) {
    return fail(ErrorCode::kBadInput, "its time must be above 0 us", measured.where);
  }
  // Two standard deviations of one timing.
  const double noise = 1 + 2 * measured.spread;
  if (time * noise < least) {
    std::string message =
        label_of(measured) + " took " +
        figures("%.4g us, but the data sheet allows no less than %.4g us (%.0f times)",
                time.count(), least.count(), least / time);
    if (measured.precision == "fp32" && device.peak.tf32_tensor > 0 &&
        kernel.unit == MathUnit::kFp32 && kernel.flops.count() > 0) {
      message += "; was it TF32? then say precision = \"tf32\"";
    } else {
      message += "; time it again, or correct the GPU's figures";
    }
    return fail(ErrorCode::kBadInput, message, measured.where);
  }
  if (time * noise < 0.8 * launch_floor) {
    return fail(ErrorCode::kBadInput,
                label_of(measured) + " took " +
                    figures("%.4g us, less than the launch floor of %.4g us", time.count(),
                            launch_floor.count(), 0),
                measured.where);
  }
  return {};
}

}  // namespace

Result<Kernel> kernel_of(const MeasuredOperator& measured, const Gpu& gpu) {
  return kernel_with(measured, [&](const AttentionShape& shape, DType dtype) {
    return choose_attention(shape, dtype, Attributes(), gpu);
  });
}

Result<Kernel> kernel_of(const MeasuredOperator& measured, const Cpu&) {
  return kernel_with(measured, [](const AttentionShape& shape, DType) {
    return choose_cpu_attention(shape, Attributes());
  });
}

Micros beyond_floor(const KernelCost& cost, const Kernel& kernel,
                    const Coefficients& coefficients) {
  constexpr Micros kLeast{1e-3};
  const double launches = std::max(0, static_cast<int>(kernel.launches) - 1);
  const Micros floor = coefficients.kernel.floor + coefficients.kernel.launch * launches;
  return std::max(kLeast, as_micros(cost.time) - floor);
}

/// Data may lie in the last-level cache, warm or not: bytes beyond it come from memory. The threads
/// share the cores' peak, and one core may boost to twice the clock that all sustain. The bandwidth
/// is that of copies, whose stores fetch each line before they fill it: operators that only read,
/// or write in place, move up to half as much again, and are granted twice.
Micros least_time(const MeasuredOperator& measured, const Kernel& kernel, const Cpu& cpu) {
  const bool half = measured.precision == "bf16" || measured.precision == "fp16";
  const double cores = std::max(1, cpu.cores);
  const double used = measured.threads > 0 ? std::min<double>(measured.threads, cores) : cores;
  const double rate = nominal_peak(cpu) / cores * used * saving_of(kernel) *
                      (half ? kHalfOnCpu : 1) * (1 + kCpuHeadroom);
  const double bytes = static_cast<double>((kernel.read + kernel.written).count()) -
                       static_cast<double>(cpu.l3.count());
  const bool known = cpu.l3.count() > 0 && cpu.bandwidth > 0;
  const double memory = known ? std::max(0.0, bytes) / (cpu.bandwidth * (1 + kCpuHeadroom)) : 0;
  return as_micros(Seconds(std::max(kernel.flops.count() / rate, memory)));
}

Micros least_time(const MeasuredOperator& measured, const Kernel& kernel, const Gpu& gpu) {
  const double matrix = gpu.vendor == Vendor::kAmd ? 2 : 1;  // matrix units double the FP32 rate
  const double arithmetic =
      kernel.flops.count() /
      (nominal_peak(gpu, kernel.unit) * saving_of(kernel) * matrix * (1 + kClockHeadroom));
  const double bytes = static_cast<double>((kernel.read + kernel.written).count());
  const bool cached = measured.warm && bytes < kWarmShare * static_cast<double>(gpu.l2.count());
  const double bandwidth = gpu.bandwidth > 0 ? gpu.bandwidth * (1 + kMemoryHeadroom) : HUGE_VAL;
  return as_micros(Seconds(std::max(arithmetic, cached ? 0 : bytes / bandwidth)));
}

Status check_physics(const MeasuredOperator& measured, const Kernel& kernel, const Gpu& gpu,
                     Micros launch_floor) {
  return check_time(measured, kernel, gpu, least_time(measured, kernel, gpu), launch_floor);
}

Status check_physics(const MeasuredOperator& measured, const Kernel& kernel, const Cpu& cpu) {
  return check_time(measured, kernel, cpu, least_time(measured, kernel, cpu), Micros(0));
}

}  // namespace stoker
