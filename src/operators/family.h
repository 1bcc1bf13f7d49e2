#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "operators/kernel_class.h"
#include "operators/shapes.h"

namespace stoker {

/// How an operator's FLOPs and bytes follow from its shapes (src/work has a function for each).
enum class WorkRule : std::uint8_t {
  kNothing,  ///< no kernel: allocations, aliases
  kPlain,    ///< one pass over the tensors
  kRows,     ///< the same along rows: softmax, layer norm, RMS norm
  kProduct,
  kProductAndSum,  ///< the addend comes first: addmm
  kLinear,         ///< the second factor is [out, in]
  kSummedBatch,    ///< addbmm
  kConvolution,
  kTransposedConvolution,
  kAttention,
  kAttentionInside,  ///< behind the dispatcher: [batch, length, heads, width]
  kRecurrent,
  kOneDnnRecurrent,  ///< a layer whole in one call of oneDNN; elsewhere a plain operator
  kCollective,
  kMoments,         ///< moments first, then what applies them
  kTrainedMoments,  ///< the same in training; in evaluation one pass
  kSoftmaxBackward,
  kPickedRows,  ///< negative log-likelihood: one element a row
  kSort,
  kFourier,
  kDistances,
  kGather,             ///< the rows that are asked for, not the whole table
  kScatter,            ///< written where indices say, left as it is elsewhere
  kScatterAdd,         ///< added where indices say
  kSortedScatter,      ///< added where indices say, which are sorted first
  kEmbeddingBackward,  ///< zeros in the whole table, then each index's sum
  kPartOfZeros,        ///< zeros in the whole result, then a part is copied or added
  kAllOfZeros          ///< zeros in the whole result, then every element is added to
};

/// Which operands a kernel reads.
enum class Operands : std::uint8_t {
  kAll,
  kFirstIsWritten,  ///< in place, the first is a destination only: copies, random numbers
  /// The second, the input of the forward, gives sizes only (aten/src/ATen/native/cuda:
  /// AveragePool2d.cu, AveragePool3d.cu, AdaptiveAveragePooling*.cu, DilatedMaxPool*.cu,
  /// AdaptiveMaxPooling*.cu, ReflectionPad.cu, ReplicationPadding.cu).
  kSecondIsSizes
};

/// Operators that are costed alike: a row of the table.
struct OperatorFamily {
  std::string_view name;
  KernelClass kernel_class;
  WorkRule rule;
  /// Blank-separated names without namespace, overload and the underscore of in-place forms, as in
  /// PyTorch's aten/src/ATen/native/native_functions.yaml; `x*` and `*x` match what begins and ends
  /// so. Stoker's own keep their namespace: "stoker::attention".
  std::string_view operators;
  Operands operands = Operands::kAll;
  std::uint16_t launches = 1;  ///< kernels behind one call
  CollectiveKind collective = CollectiveKind::kGather;
};

/// All rows. The first of a class is its plain one, to which `_backward` and `_copy` forms of names
/// belong whose own row is about the names alone.
[[nodiscard]] std::span<const OperatorFamily> operator_families();

/// The row that a name of a step file belongs to, "aten::add_.Tensor"; the family "uncosted" for a
/// name without one and for those of other libraries, whose `add` need not be PyTorch's.
[[nodiscard]] const OperatorFamily& family_of(std::string_view operator_name);

/// The name without namespace, overload and the underscore of in-place forms.
[[nodiscard]] std::string_view stem_of(std::string_view operator_name);
/// "gelu_backward" of "aten::gelu_backward.grad_input"; in-place forms keep their underscore.
[[nodiscard]] std::string_view function_of(std::string_view operator_name);

}  // namespace stoker
