#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/result.h"
#include "device/calibration_data.h"

namespace stoker::accuracy {

inline constexpr std::size_t kCalibratingOperators = 30;

/// A measured operator of the tables of single operators (ops-neusight-*.csv.gz).
struct TableOperator {
  std::string gpu;
  std::string family;  ///< "bmm", "linear", "elementwise", "softmax", "layer_norm", "convolution"
  MeasuredOperator measured;
};

/// All FP32 operators of the tables below `data`.
[[nodiscard]] Result<std::vector<TableOperator>> table_operators(const std::filesystem::path& data);

/// What somebody with this GPU might have measured: of its operators that take five launch floors
/// or more, `count` of them, families in turn, within a family in the order of a hash of the shape.
/// The launch floor is the shortest time of all of the GPU's operators.
[[nodiscard]] Calibration calibration_from(const std::vector<TableOperator>& operators,
                                           const std::string& gpu,
                                           std::size_t count = kCalibratingOperators);

}  // namespace stoker::accuracy
