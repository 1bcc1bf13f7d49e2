// timing_rows ROWS [--coefficients FILE | --features]: the cost model on a list of kernels, for
// fitting and scoring.
//
// A developer's tool, not installed: scripts/fit-timing drives it, so that there is one
// implementation of the cost rules. ROWS has one kernel a line, blank-separated:
//   GPU CLASS UNIT DTYPE PHASE FLOPS READ WRITTEN ELEMENTS SHAPE...
// with CLASS ("gemm"), UNIT ("fp32"), DTYPE ("f32") and PHASE ("forward") by their names, READ and
// WRITTEN in bytes, and SHAPE one of
//   none
//   gemm BATCH M N K TRANSPOSE_A TRANSPOSE_B
//   rows ROWS WIDTH
//   conv BATCH IN_CHANNELS OUT_CHANNELS GROUPS IN_H IN_W OUT_H OUT_W KERNEL STRIDE CHANNELS_LAST
//   PASS
// with PASS forward, backward_input or backward_weight.
// Each line of standard input is a patch ("gemm.compute=0.9 kernel.floor_us=3", or empty); the
// answer is the time of every row in nanoseconds, as native doubles.
//
// With --features: instead, once, for each row the fold of its shape, its time by the plain rules
// in nanoseconds and its features, as native doubles; rows of one family only. The first line of
// standard output is then the family, the fingerprint of features and their names.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/durations.h"
#include "device/catalogue/gpu_catalogue.h"
#include "timing/gpu/kernel_cost.h"
#include "timing/learned/residual.h"
#include "timing/step/coefficient_file.h"
#include "timing_tool.h"

namespace stoker {
namespace {

constexpr const char* kTool = "timing_rows";

struct Row {
  std::size_t gpu;
  Kernel kernel;
};

struct Rows {
  std::vector<Gpu> gpus;
  std::vector<Row> rows;
};

/// Reads the name of one of `count` values of an enumeration; the stream fails on any other word.
template <class Value>
void read_name(std::istream& in, std::size_t count, Value& into) {
  std::string word;
  in >> word;
  for (std::size_t i = 0; i < count; ++i) {
    if (name_of(static_cast<Value>(i)) == word) return void(into = static_cast<Value>(i));
  }
  in.setstate(std::ios::failbit);
}

KernelShape read_shape(std::istream& in) {
  std::string kind;
  in >> kind;
  if (kind == "gemm") {
    GemmShape s;
    in >> s.batch >> s.m >> s.n >> s.k >> s.transpose_a >> s.transpose_b;
    return s;
  }
  if (kind == "rows") {
    RowShape s;
    in >> s.rows >> s.width;
    return s;
  }
  if (kind == "conv") {
    ConvolutionShape s;
    std::string pass;
    in >> s.batch >> s.in_channels >> s.out_channels >> s.groups >> s.in[0] >> s.in[1] >>
        s.out[0] >> s.out[1] >> s.kernel[0] >> s.stride[0] >> s.channels_last >> pass;
    s.kernel[1] = s.kernel[0];
    s.stride[1] = s.stride[0];
    if (pass == "backward_input") s.pass = Pass::kBackwardInput;
    else if (pass == "backward_weight") s.pass = Pass::kBackwardWeight;
    else if (pass != "forward") in.setstate(std::ios::failbit);
    return s;
  }
  return std::monostate{};
}

Result<Rows> read_rows(const std::string& path) {
  auto catalogue = TRY(GpuCatalogue::load());
  std::ifstream file(path);
  if (!file) return fail(ErrorCode::kIo, "cannot be read", path);
  Rows out;
  std::map<std::string, std::size_t> known;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream in(line);
    std::string gpu;
    double flops = 0, read = 0, written = 0;
    Row row;
    in >> gpu;
    read_name(in, kKernelClasses, row.kernel.kernel_class);
    read_name(in, kMathUnits, row.kernel.unit);
    read_name(in, kDTypes, row.kernel.dtype);
    read_name(in, kStepPhases, row.kernel.phase);
    in >> flops >> read >> written >> row.kernel.elements;
    row.kernel.shape = read_shape(in);
    if (!in) {
      return fail(ErrorCode::kBadInput, "not a row of kernels",
                  path + ":" + std::to_string(out.rows.size() + 1));
    }
    if (!known.contains(gpu)) {
      auto found = TRY(catalogue.find(gpu));
      known[gpu] = out.gpus.size();
      out.gpus.push_back(found);
    }
    row.gpu = known[gpu];
    row.kernel.flops = Flops(flops);
    row.kernel.read = Bytes(static_cast<std::int64_t>(read));
    row.kernel.written = Bytes(static_cast<std::int64_t>(written));
    out.rows.push_back(row);
  }
  return out;
}

Status answer(const Rows& rows, const CoefficientFile& file, std::istringstream& line) {
  CoefficientPatch patch;
  for (std::string item; line >> item;) TRY(timing_tool::add_item(item, patch));
  std::vector<CostModel> models;
  for (const Gpu& gpu : rows.gpus) {
    auto coefficients = TRY(file.for_device(gpu, &patch));
    models.emplace_back(gpu, coefficients);
  }
  std::vector<double> times;
  times.reserve(rows.rows.size());
  for (const Row& row : rows.rows)
    times.push_back(models[row.gpu].cost_of(row.kernel).time.count());
  std::fwrite(times.data(), sizeof(double), times.size(), stdout);
  std::fflush(stdout);
  return {};
}

Status print_features(const Rows& rows) {
  std::vector<ResidualFeatures> makers;
  for (const Gpu& gpu : rows.gpus) makers.emplace_back(gpu);
  std::vector<double> values;
  std::optional<ResidualFamily> family;
  for (const Row& row : rows.rows) {
    const auto input = makers[row.gpu].of(row.kernel);
    if (!input || (family && *family != input->family))
      return fail(ErrorCode::kBadInput, "rows must be kernels of one family of learned times");
    family = input->family;
    values.push_back(static_cast<double>(input->shape % kForestFolds));
    values.push_back(as_nanos(input->plain).count());
    for (std::size_t i = 0; i < feature_names(*family).size(); ++i)
      values.push_back(static_cast<double>(input->features[i]));
  }
  if (!family) return fail(ErrorCode::kBadInput, "there are no rows");
  std::printf("%s %016llx", std::string(name_of(*family)).c_str(),
              static_cast<unsigned long long>(feature_fingerprint()));
  for (const std::string_view name : feature_names(*family))
    std::printf(" %s", std::string(name).c_str());
  std::printf("\n");
  std::fwrite(values.data(), sizeof(double), values.size(), stdout);
  return {};
}

int run_features(const std::string& rows_path) {
  auto rows = read_rows(rows_path);
  const Status status = rows ? print_features(*rows) : tl::unexpected(rows.error());
  return status ? 0 : timing_tool::complain(kTool, status.error());
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  const bool names_coefficients = argc == 4 && std::strcmp(argv[2], "--coefficients") == 0;
  if (argc == 2 || names_coefficients) {
    return stoker::timing_tool::answer_lines(stoker::kTool, names_coefficients ? argv[3] : "",
                                             stoker::read_rows(argv[1]), stoker::answer);
  }
  if (argc == 3 && std::strcmp(argv[2], "--features") == 0) return stoker::run_features(argv[1]);
  std::fprintf(stderr, "usage: timing_rows ROWS [--coefficients FILE | --features]\n");
  return 2;
}
