#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operators/operator_name.h"
#include "step/polynomial.h"

namespace stoker {

enum class TypeId : std::uint32_t {};
enum class StorageId : std::uint32_t {};
enum class NameId : std::uint32_t {};    ///< index into Step::operator_names
enum class ModuleId : std::uint32_t {};  ///< index into Step::module_names

template <class Id>
[[nodiscard]] constexpr std::size_t index(Id id) {
  return static_cast<std::size_t>(id);
}

enum class DType : std::uint8_t {
  kF64,
  kF32,
  kTf32,
  kF16,
  kBf16,
  kF8,
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kBool,
  kC64
};
inline constexpr std::size_t kDTypes = 13;
[[nodiscard]] int size_of(DType dtype);  ///< bytes per element
[[nodiscard]] std::string_view name_of(DType dtype);

/// How a tensor lies in its storage.
enum class Layout : std::uint8_t { kRowMajor, kPermuted, kStrided };

struct TensorType {
  DType dtype = DType::kF32;
  std::vector<Polynomial> shape;
  Layout layout = Layout::kRowMajor;
  std::vector<std::uint8_t>
      order;  ///< of kPermuted: dimensions from the largest stride to the smallest
};

enum class StorageKind : std::uint8_t {
  kParameter,
  kBuffer,
  kInput,
  kGradient,
  kOutput,
  kTransient,
  kPersistent
};

struct Storage {
  Polynomial bytes;
  StorageKind kind = StorageKind::kTransient;
};

struct TensorRef {
  TypeId type{};
  StorageId storage{};
};

/// What decides an operator's cost and cannot be read from its types (docs/reference/step-file.md,
/// attributes).
struct Attributes {
  std::vector<std::int32_t> stride, padding, dilation, output_padding, kernel, dim;
  std::vector<bool> gradients;  ///< JSON `mask`: input, weight, bias
  std::int32_t groups = 1;
  bool transposed = false;
  bool causal = false;
  bool train = true;
  double dropout = 0;
  double scale = 0;                  ///< 0: the default, 1 / sqrt(head_dim)
  std::string mask_kind = "none";    ///< attention
  std::vector<std::int32_t> window;  ///< keys that a query sees before and after it; -1: all
  std::string rnn_mode;              ///< gru lstm rnn_tanh rnn_relu
  std::int32_t layers = 1, hidden = 0;
  bool bidirectional = false, batch_first = false;
  std::int32_t views = 0;  ///< views dispatched since the last written operator
  std::int32_t graph = 0;  ///< run of a graph of torch.compile that it belongs to, from 1; 0: none
};

struct Operator {
  NameId name{};
  ModuleId module{};
  std::uint32_t link = 0;  ///< ties backward to forward; 0: none
  std::vector<TensorRef> inputs;
  std::vector<TensorRef> outputs;
  std::uint32_t attributes = 0;  ///< index into Step::attributes; 0 is the empty one
};

enum class Phase : std::uint8_t { kLoad, kForward, kLoss, kBackward, kEnd };
[[nodiscard]] std::string_view name_of(Phase phase);

enum class EventKind : std::uint8_t { kPhase, kAllocate, kFree, kOperator, kSynchronize };

/// `value` is a Phase, a StorageId, or an index into Step::operators, by kind.
struct Event {
  EventKind kind;
  std::uint32_t value;
};

struct Parameter {
  std::string name;
  TypeId type{};
  StorageId storage{};
  bool requires_grad = true;
  std::int64_t gradient = -1;  ///< StorageId of .grad, -1 when it gets none
  std::int32_t group = 0;      ///< of the optimizer; -1: it was not given this one, so no update
};

struct NamedTensor {
  std::string name;
  TypeId type{};
  StorageId storage{};
};

struct Dimension {
  std::string name;
  std::int64_t unit = 1;
  std::int64_t default_value = 1;  ///< in the user's terms, not divided by unit
  std::int64_t minimum = 1;
  std::int64_t maximum = 0;  ///< 0: no limit of the model's own
};

/// Optimizer as the capture function returned it; `name` empty when it returned none.
struct CapturedOptimizer {
  std::string name;  ///< "adamw"
  /// What steps in a hook of each gradient, within the captured backward; then `name` is "none".
  std::string in_backward;
  std::string class_name;  ///< in Python, where it is not PyTorch's own: "lion_pytorch.Lion"
  struct Group {
    std::map<std::string, double> numbers;  ///< lr, weight_decay, momentum, nesterov (0/1) ...
    std::string name = {};                  ///< what steps this group; empty: the optimizer's name
  };
  std::vector<Group> groups;
};

/// What the capture function said about the loop around the step; absent where it said nothing.
struct CapturedTraining {
  std::optional<bool> clip;         ///< clip_grad_norm_
  std::optional<bool> ema;          ///< a moving average of the model
  std::optional<bool> grad_scaler;  ///< torch.amp.GradScaler
  /// Where there are several moving averages, or one of a part: what stands before the names of the
  /// parameters and buffers that each of them copies, "" for all.
  std::vector<std::string> averages;
};

enum class CaptureKind : std::uint8_t { kCuda, kFakeCuda, kFakeCpu };

enum class SourceKind : std::uint8_t {
  kFile,
  kFolder,  ///< whose names the user's code listed
  kAbsent   ///< what the user's code looked for, and did not find
};

/// What a capture was made from, on the computer that made it.
struct CaptureSource {
  std::string path;
  std::int64_t bytes = 0;  ///< of a folder: how many names it had
  /// Checksum of a file's content, nullopt where it is too large to be read each time; of a
  /// folder's sorted names, each with a line break.
  std::optional<std::uint32_t> crc32;
  SourceKind kind = SourceKind::kFile;
};

struct Provenance {
  std::string spec, torch, python, stoker, date, event_hash;
  CaptureKind capture = CaptureKind::kFakeCuda;
  std::map<std::string, std::string> libraries;
  std::int64_t captured_at = 0;        ///< seconds since 1970, of a remembered capture; else 0
  std::vector<CaptureSource> sources;  ///< of a remembered capture alone
  /// Variables that the user's code read: crc32 of the value, nullopt: it was not set.
  std::map<std::string, std::optional<std::uint32_t>> environment;
};

/// One captured training or inference step. Immutable after reading; all ids are in range and
/// lifetimes are checked (step_reader.h), so that users of a Step need not check again.
struct Step {
  std::string name;
  std::string mode;       ///< train, forward (with a graph, no backward), inference
  std::string precision;  ///< fp32, amp-fp16, amp-bf16, bf16, fp16
  Provenance provenance;
  std::vector<Dimension> dimensions;  ///< batch first
  std::string sample_what = "sample";
  std::vector<OperatorName> operator_names;
  std::vector<std::string> module_names;
  std::vector<TensorType> types;
  std::vector<Storage> storages;
  std::vector<Parameter> parameters;
  std::vector<NamedTensor> buffers;
  std::vector<NamedTensor> inputs;
  CapturedOptimizer optimizer;
  CapturedTraining training;
  std::int64_t compiled_graphs = 0;  ///< of torch.compile; 0: it is eager, < 0: lost_compiler.h
  std::vector<Operator> operators;
  std::vector<Attributes> attributes;
  std::vector<Event> events;
  std::map<std::string, std::int64_t> decomposed;  ///< operator -> count (diagnostics)
  std::int64_t item_calls = 0;
  std::int64_t math_attention = 0;
  std::vector<std::string> unfaithful;
  std::vector<std::string> warnings;         ///< what is wrong with the training that was captured
  std::map<std::string, std::string> reads;  ///< "net.py:12" -> "true": what depends on data

  [[nodiscard]] std::string_view operator_name(const Operator& op) const {
    return name_of(op).text();
  }
  [[nodiscard]] const OperatorName& name_of(const Operator& op) const {
    return operator_names[index(op.name)];
  }
  [[nodiscard]] const OperatorFamily& family_of(const Operator& op) const {
    return name_of(op).family();
  }
  [[nodiscard]] const Attributes& attributes_of(const Operator& op) const {
    return attributes[op.attributes];
  }
};

}  // namespace stoker
