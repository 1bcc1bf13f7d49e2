#include "accuracy/time/calibrating_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "accuracy/common/bench.h"
#include "base/files.h"

namespace stoker::accuracy {
namespace {

constexpr Bytes kMaxTable{256LL << 20};
constexpr double kFloorsToChoose = 5;

std::int64_t whole(const CsvRow& row, std::string_view column) {
  return static_cast<std::int64_t>(number(row, column));
}

/// The table's N is the contracted dimension of both.
void read_product(const CsvRow& r, TableOperator& out) {
  out.measured.kind = "gemm";
  out.family = std::string(r["op"]);
  if (r["op"] == "bmm") {
    out.measured.sizes = {
        {"batch", whole(r, "B")}, {"m", whole(r, "M")}, {"n", whole(r, "K")}, {"k", whole(r, "N")}};
  } else {
    out.measured.sizes = {{"m", whole(r, "B") * whole(r, "M")},
                          {"n", whole(r, "K")},
                          {"k", whole(r, "N")},
                          {"transpose_b", 1},
                          {"bias", 1}};
  }
}

void read_vector(const CsvRow& r, TableOperator& out) {
  const std::string_view op = r["op"];
  const std::int64_t rows = whole(r, "B"), width = whole(r, "H");
  if (op == "softmax" || op == "ln") {
    out.measured.kind = out.family = op == "ln" ? "layer_norm" : "softmax";
    out.measured.sizes = {{"rows", rows}, {"width", width}};
    return;
  }
  const bool two = op == "add" || op == "mul" || op == "div" || op == "pow";
  out.measured.kind = out.family = "elementwise";
  out.measured.sizes = {{"elements", rows * width}, {"inputs", two ? 2 : 1}};
}

void read_convolution(const CsvRow& r, TableOperator& out) {
  out.measured.kind = out.family = "convolution";
  out.measured.sizes = {{"batch", whole(r, "B")},           {"in_channels", whole(r, "Cin")},
                        {"out_channels", whole(r, "Cout")}, {"height", whole(r, "in_size")},
                        {"width", whole(r, "in_size")},     {"kernel", whole(r, "ksize")},
                        {"stride", whole(r, "stride")},     {"padding", whole(r, "pad")}};
}

struct TableKind {
  const char* file;
  void (*read)(const CsvRow&, TableOperator&);
};
constexpr TableKind kTables[] = {{"ops-neusight-gemm.csv.gz", read_product},
                                 {"ops-neusight-vec.csv.gz", read_vector},
                                 {"ops-neusight-conv.csv.gz", read_convolution}};

}  // namespace

Result<std::vector<TableOperator>> table_operators(const std::filesystem::path& data) {
  std::vector<TableOperator> all;
  for (const TableKind& table : kTables) {
    const auto text = TRY(read_gzip_file(data / table.file, kMaxTable));
    const auto rows = TRY(parse_csv(text, table.file));
    for (const CsvRow& row : rows) {
      if (row["dtype"] != "fp32") continue;
      TableOperator one;
      one.gpu = std::string(row["gpu"]);
      one.measured.time_us = 1e3 * number(row, "time_ms");
      one.measured.where = std::string(table.file) + ":" + std::to_string(row.line);
      table.read(row, one);
      all.push_back(std::move(one));
    }
  }
  return all;
}

Calibration calibration_from(const std::vector<TableOperator>& operators, const std::string& gpu,
                             std::size_t count) {
  Calibration out;
  double floor = HUGE_VAL;
  for (const TableOperator& o : operators) {
    if (o.gpu == gpu) floor = std::min(floor, o.measured.time_us);
  }
  if (!std::isfinite(floor)) return out;
  out.launch_floor_us = floor;
  std::map<std::string, std::vector<std::pair<std::uint64_t, const MeasuredOperator*>>> families;
  for (const TableOperator& o : operators) {
    if (o.gpu == gpu && o.measured.time_us >= kFloorsToChoose * floor)
      families[o.family].emplace_back(hash_of(label_of(o.measured), 1), &o.measured);
  }
  for (auto& [family, rows] : families) {
    std::ranges::stable_sort(rows, {}, [](const auto& row) { return row.first; });
  }
  for (std::size_t i = 0; out.operators.size() < count; ++i) {
    bool any = false;
    for (const auto& [family, rows] : families) {
      if (i >= rows.size() || out.operators.size() >= count) continue;
      out.operators.push_back(*rows[i].second);
      any = true;
    }
    if (!any) break;
  }
  return out;
}

}  // namespace stoker::accuracy
