#include "step/work.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

/// Arithmetic per element of a memory-bound operator; only orders of magnitude matter, bytes
/// decide.
constexpr double kElementwiseFlops = 1;
constexpr double kNormalizationFlops = 8;  // two moments, scale and shift
constexpr double kSoftmaxFlops = 5;        // max, subtract, exp, sum, divide

/// The view of one operator that the rules below share.
class Describer {
 public:
  Describer(const Step& step, const Operator& op, const Sizes& sizes)
      : step_(step), op_(op), sizes_(sizes), attributes_(step.attributes_of(op)) {}

  /// Bytes in and out, each storage and tensor once; class and largest tensor.
  Work base(KernelClass kernel_class) const {
    Work work;
    work.kernel_class = kernel_class;
    for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
      if (kernel_class == KernelClass::kFill) break;
      if (seen_before(op_.inputs, i)) continue;
      work.read += sizes_.touched(step_, op_.inputs[i]);
      work.elements = std::max(work.elements, sizes_.elements(op_.inputs[i].type));
    }
    for (const TensorRef& out : op_.outputs) {
      work.written += sizes_.touched(step_, out);
      work.elements = std::max(work.elements, sizes_.elements(out.type));
    }
    if (!op_.outputs.empty()) work.dtype = dtype(op_.outputs[0]);
    if (!op_.inputs.empty()) work.dtype = dtype(op_.inputs[0]);
    return work;
  }

  DType dtype(const TensorRef& t) const { return step_.types[index(t.type)].dtype; }
  std::span<const std::int64_t> shape(const TensorRef& t) const { return sizes_.shape(t.type); }
  Bytes bytes(const TensorRef& t) const { return sizes_.touched(step_, t); }
  std::int64_t elements(const TensorRef& t) const { return sizes_.elements(t.type); }
  /// True for a matrix (the last two dimensions) that lies column-major in memory.
  bool transposed(const TensorRef& t) const {
    const TensorType& type = step_.types[index(t.type)];
    if (type.layout != Layout::kPermuted || type.order.size() < 2) return false;
    return type.order.back() == type.order.size() - 2;
  }
  bool channels_last(const TensorRef& t) const {
    const TensorType& type = step_.types[index(t.type)];
    return type.layout == Layout::kPermuted && type.order.size() >= 4 && type.order.back() == 1;
  }
  const Operator& op() const { return op_; }
  const Attributes& attributes() const { return attributes_; }

 private:
  static bool seen_before(const std::vector<TensorRef>& list, std::size_t i) {
    return std::any_of(
        list.begin(), list.begin() + static_cast<std::ptrdiff_t>(i),
        [&](const TensorRef& t) { return t.storage == list[i].storage && t.type == list[i].type; });
  }

  const Step& step_;
  const Operator& op_;
  const Sizes& sizes_;
  const Attributes& attributes_;
};

void append_gemm(const Describer& d, std::string_view name, std::vector<Work>& into) {
  Work work = d.base(KernelClass::kGemm);
  const auto& in = d.op().inputs;
  // addmm, baddbmm, addmv carry the addend first; the factors are the next two.
  const std::size_t first = name.find("add") != std::string_view::npos && in.size() >= 3 ? 1 : 0;
  if (in.size() < first + 2) {
    work.kernel_class = KernelClass::kUncosted;
    into.push_back(work);
    return;
  }
  const TensorRef& a = in[first];
  const TensorRef& b = in[first + 1];
  const auto sa = d.shape(a);
  const auto sb = d.shape(b);
  GemmShape g;
  g.transpose_a = d.transposed(a);
  g.transpose_b = d.transposed(b);
  const bool linear = name.find("linear") != std::string_view::npos;
  g.k = sa.empty() ? 1 : sa.back();
  if (sa.size() == 3 && sb.size() == 3 && !linear) {
    g.batch = sa[0];
    g.m = sa[1];
    g.n = sb[2];
  } else {
    g.m = g.k > 0 ? d.elements(a) / g.k : 0;
    g.n = g.k > 0 ? d.elements(b) / g.k : 0;
    if (linear) g.transpose_b = true;  // weight is [out, in]
  }
  work.dtype = d.dtype(a);
  work.flops = Flops(2.0 * static_cast<double>(g.batch) * static_cast<double>(g.m) *
                     static_cast<double>(g.n) * static_cast<double>(g.k));
  work.shape = g;
  into.push_back(work);
}

std::int64_t side(const std::vector<std::int32_t>& list, std::size_t i, std::int64_t otherwise) {
  if (list.empty()) return otherwise;
  return list.size() == 1 ? list[0] : i < list.size() ? list[i] : otherwise;
}

/// Geometry from the input, weight and output tensors of a convolution (forward direction).
ConvolutionShape convolution_shape(const Describer& d, const TensorRef& input,
                                   const TensorRef& weight, const TensorRef& output) {
  ConvolutionShape c;
  const auto in = d.shape(input);
  const auto w = d.shape(weight);
  const auto out = d.shape(output);
  const Attributes& a = d.attributes();
  c.groups = a.groups;
  c.transposed = a.transposed;
  c.channels_last = d.channels_last(input) || d.channels_last(weight);
  c.spatial = static_cast<int>(std::min<std::size_t>(3, w.size() > 2 ? w.size() - 2 : 1));
  if (in.size() < 2 || out.size() < 2 || w.size() < 2) return c;
  c.batch = in[0];
  c.in_channels = in[1];
  c.out_channels = out[1];
  for (std::size_t i = 0; i < static_cast<std::size_t>(c.spatial); ++i) {
    if (in.size() > i + 2) c.in[i] = in[i + 2];
    if (out.size() > i + 2) c.out[i] = out[i + 2];
    if (w.size() > i + 2) c.kernel[i] = w[i + 2];
    c.stride[i] = side(a.stride, i, 1);
    c.dilation[i] = side(a.dilation, i, 1);
  }
  return c;
}

Flops convolution_flops(const ConvolutionShape& c) {
  double taps = 1;
  double positions = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    taps *= static_cast<double>(c.kernel[i]);
    positions *= static_cast<double>(c.transposed ? c.in[i] : c.out[i]);
  }
  return Flops(2.0 * static_cast<double>(c.batch) * positions * taps *
               static_cast<double>(c.in_channels) * static_cast<double>(c.out_channels) /
               static_cast<double>(std::max<std::int64_t>(1, c.groups)));
}

KernelClass convolution_class(const ConvolutionShape& c) {
  return c.groups > 1 && c.groups == c.in_channels ? KernelClass::kDepthwiseConvolution
                                                   : KernelClass::kConvolution;
}

Work convolution_work(const Describer& d, ConvolutionShape c, Pass pass, Bytes read,
                      Bytes written) {
  c.pass = pass;
  Work work;
  work.kernel_class = convolution_class(c);
  work.flops = convolution_flops(c);
  work.read = read;
  work.written = written;
  work.dtype = d.dtype(d.op().inputs[0]);
  work.elements = 0;
  for (const TensorRef& t : d.op().inputs) work.elements = std::max(work.elements, d.elements(t));
  work.shape = c;
  return work;
}

void append_convolution(const Describer& d, std::vector<Work>& into) {
  const Operator& op = d.op();
  if (op.inputs.size() < 2 || op.outputs.empty()) {
    into.push_back(d.base(KernelClass::kUncosted));
    return;
  }
  const ConvolutionShape c = convolution_shape(d, op.inputs[0], op.inputs[1], op.outputs[0]);
  const Bytes output = d.bytes(op.outputs[0]);
  into.push_back(convolution_work(d, c, Pass::kForward,
                                  d.bytes(op.inputs[0]) + d.bytes(op.inputs[1]), output));
  if (op.inputs.size() > 2) {  // cuDNN adds the bias in a kernel of its own (ATen, Convolution.cpp)
    Work bias = d.base(KernelClass::kElementwise);
    bias.read = output + d.bytes(op.inputs[2]);
    bias.written = output;
    bias.elements = d.elements(op.outputs[0]);
    bias.flops = Flops(static_cast<double>(bias.elements));
    into.push_back(bias);
  }
}

void append_convolution_backward(const Describer& d, std::vector<Work>& into) {
  const Operator& op = d.op();
  if (op.inputs.size() < 3) {
    into.push_back(d.base(KernelClass::kUncosted));
    return;
  }
  const TensorRef& gradient = op.inputs[0];
  const TensorRef& input = op.inputs[1];
  const TensorRef& weight = op.inputs[2];
  const ConvolutionShape c = convolution_shape(d, input, weight, gradient);
  const auto& mask = d.attributes().gradients;
  const auto wanted = [&](std::size_t i) {
    return mask.size() > i ? static_cast<bool>(mask[i]) : i < 2;
  };
  if (wanted(0)) {
    into.push_back(convolution_work(d, c, Pass::kBackwardInput, d.bytes(gradient) + d.bytes(weight),
                                    d.bytes(input)));
  }
  if (wanted(1)) {
    into.push_back(convolution_work(d, c, Pass::kBackwardWeight, d.bytes(gradient) + d.bytes(input),
                                    d.bytes(weight)));
  }
  if (wanted(2)) {
    Work bias = d.base(KernelClass::kReduction);
    bias.read = d.bytes(gradient);
    bias.written = Bytes(c.out_channels * size_of(d.dtype(gradient)));
    bias.elements = d.elements(gradient);
    bias.flops = Flops(static_cast<double>(bias.elements));
    into.push_back(bias);
  }
}

void append_rnn(const Describer& d, bool backward, std::vector<Work>& into) {
  Work work = d.base(KernelClass::kRnn);
  const Attributes& a = d.attributes();
  RnnShape r;
  r.backward = backward;
  r.hidden = a.hidden;
  r.layers = a.layers;
  r.directions = a.bidirectional ? 2 : 1;
  r.gates = a.rnn_mode == "lstm" ? 4 : a.rnn_mode == "gru" ? 3 : 1;
  if (!d.op().inputs.empty()) {
    const auto in = d.shape(d.op().inputs[0]);
    if (in.size() == 3) {  // time-major inside, whatever batch_first says of the caller's tensor
      r.length = in[a.batch_first ? 1 : 0];
      r.batch = in[a.batch_first ? 0 : 1];
      r.input = in[2];
    }
  }
  const auto per_layer = [&](double inputs) {
    return 2.0 * static_cast<double>(r.batch * r.length * r.hidden) * r.gates * r.directions *
           (inputs + static_cast<double>(r.hidden));
  };
  double flops =
      per_layer(static_cast<double>(r.input)) +
      static_cast<double>(r.layers - 1) * per_layer(static_cast<double>(r.hidden * r.directions));
  if (backward) flops *= 2;  // gradients of inputs and of weights
  work.flops = Flops(flops);
  work.shape = r;
  into.push_back(work);
}

void append_attention(const Describer& d, bool backward, std::vector<Work>& into) {
  Work work = d.base(KernelClass::kAttention);
  const auto& in = d.op().inputs;
  const std::size_t q = backward ? 1 : 0;
  if (in.size() < q + 3 || d.shape(in[q]).size() != 4) {
    work.kernel_class = KernelClass::kUncosted;
    into.push_back(work);
    return;
  }
  const auto query = d.shape(in[q]);
  const auto key = d.shape(in[q + 1]);
  AttentionShape s;
  s.batch = query[0];
  s.heads = query[1];
  s.query_length = query[2];
  s.head_dim = query[3];
  s.key_length = key[2];
  s.causal = d.attributes().causal;
  s.backward = backward;
  // Two products forward; backward recomputes the scores and makes four more.
  const double products = backward ? 5 : 2;
  double flops = products * 2.0 * static_cast<double>(s.batch * s.heads) *
                 static_cast<double>(s.query_length) * static_cast<double>(s.key_length) *
                 static_cast<double>(s.head_dim);
  if (s.causal) flops /= 2;
  work.flops = Flops(flops);
  work.dtype = d.dtype(in[q]);
  work.shape = s;
  into.push_back(work);
}

/// Rows of a softmax (over the last dimension, where nearly all are) or of a layer norm; nothing for
/// norms over other dimensions.
KernelShape row_shape(const Describer& d, std::string_view name) {
  const auto& op = d.op();
  const bool layer_norm = name.find("layer_norm") != std::string_view::npos ||
                          name.find("rms_norm") != std::string_view::npos;
  if (!layer_norm && name.find("softmax") == std::string_view::npos) return {};
  if (op.inputs.empty()) return {};
  const std::int64_t elements = d.elements(op.inputs[0]);
  const auto shape = d.shape(op.inputs[0]);
  std::int64_t width = shape.empty() ? 1 : shape.back();
  // The statistics have one element a row, whatever the norm reduces over: the second output
  // forward, the third input backward.
  const bool backward = name.find("_backward") != std::string_view::npos;
  const auto& list = backward ? op.inputs : op.outputs;
  const std::size_t statistics = backward ? 2 : 1;
  if (layer_norm && list.size() > statistics) {
    const std::int64_t rows = d.elements(list[statistics]);
    if (rows > 0 && elements % rows == 0) width = elements / rows;
  }
  if (width <= 0) return {};
  return RowShape{elements / width, width};
}

double flops_per_element(KernelClass kernel_class) {
  switch (kernel_class) {
    case KernelClass::kNormalization:
      return kNormalizationFlops;
    case KernelClass::kSoftmax:
      return kSoftmaxFlops;
    case KernelClass::kCopy:
    case KernelClass::kFill:
    case KernelClass::kGather:
      return 0;
    default:
      return kElementwiseFlops;
  }
}

/// The negative log-likelihood picks one element a row: forward it reads those alone, backward it
/// writes the whole gradient and reads none of the scores.
void append_nll(const Describer& d, bool backward, std::vector<Work>& into) {
  Work work = d.base(KernelClass::kReduction);
  const auto& in = d.op().inputs;
  const std::size_t scores = backward ? 1 : 0;
  if (in.size() > scores + 1) {
    const std::int64_t rows = d.elements(in[scores + 1]);
    const std::int64_t picked = backward ? 0 : rows * size_of(d.dtype(in[scores]));
    work.read = Bytes(picked) + d.bytes(in[scores + 1]);
    if (!backward) work.elements = rows;
  }
  work.flops = Flops(static_cast<double>(work.elements));
  into.push_back(work);
}

/// Embeddings and gathers touch the rows that are asked for, not the whole table.
void append_gather(const Describer& d, std::string_view name, std::vector<Work>& into) {
  Work work = d.base(KernelClass::kGather);
  const bool table_first = name.find("embedding") != std::string_view::npos ||
                           name.find("index") != std::string_view::npos ||
                           name.find("gather") != std::string_view::npos;
  if (table_first && !d.op().inputs.empty() && !d.op().outputs.empty()) {
    const Bytes table = d.bytes(d.op().inputs[0]);
    const Bytes moved = d.bytes(d.op().outputs[0]);
    if (table > moved) work.read += moved - table;
  }
  into.push_back(work);
}

/// `groups` of a collective's attributes is the number of ranks.
void append_collective(const Describer& d, std::string_view name, std::vector<Work>& into) {
  Work work = d.base(KernelClass::kCollective);
  if (work.elements == 0) return;
  const auto is = [&](std::string_view kind) { return name.find(kind) != std::string_view::npos; };
  CollectiveShape shape;
  shape.ranks = d.attributes().groups;
  shape.kind = is("all_gather")       ? CollectiveKind::kAllGather
               : is("reduce_scatter") ? CollectiveKind::kReduceScatter
               : is("broadcast")      ? CollectiveKind::kBroadcast
               : is("reduce")         ? CollectiveKind::kReduce
               : is("scatter")        ? CollectiveKind::kScatter
                                      : CollectiveKind::kGather;
  work.shape = shape;
  into.push_back(work);
}

}  // namespace

void append_work(const Step& step, const Operator& op, const Sizes& sizes,
                 std::vector<Work>& into) {
  const std::string_view name = step.operator_name(op);
  if (launches_nothing(name)) return;
  const Describer d(step, op, sizes);
  const bool backward = name.find("_backward") != std::string_view::npos;
  switch (const KernelClass kernel_class = class_of(name)) {
    case KernelClass::kGemm:
      return append_gemm(d, name, into);
    case KernelClass::kConvolution:
    case KernelClass::kDepthwiseConvolution:
      return backward ? append_convolution_backward(d, into) : append_convolution(d, into);
    case KernelClass::kRnn:
      return append_rnn(d, backward, into);
    case KernelClass::kAttention:
      return append_attention(d, backward, into);
    case KernelClass::kGather:
      return append_gather(d, name, into);
    case KernelClass::kCollective:
      return append_collective(d, name, into);
    case KernelClass::kReduction:
      if (name.find("nll_loss") != std::string_view::npos) return append_nll(d, backward, into);
      [[fallthrough]];
    default: {
      Work work = d.base(kernel_class);
      if (work.elements == 0) return;  // nothing to do on an empty tensor
      work.flops = Flops(flops_per_element(kernel_class) * static_cast<double>(work.elements));
      work.shape = row_shape(d, name);
      into.push_back(work);
    }
  }
}

StepTotals totals_of(const Step& step, const Sizes& sizes) {
  StepTotals totals;
  for (const Parameter& p : step.parameters) {
    totals.parameters += sizes.tensor(step, p.type);
    if (p.gradient >= 0) totals.gradients += sizes.tensor(step, p.type);
  }
  for (const NamedTensor& input : step.inputs) totals.inputs += sizes.storage(input.storage);
  bool backward = false;
  Bytes live;
  std::vector<Work> work;
  for (const Event& event : step.events) {
    if (event.kind == EventKind::kPhase && Phase(event.value) == Phase::kBackward) {
      backward = true;
      totals.activations = live;
    } else if (event.kind == EventKind::kAllocate) {
      live += sizes.storage(StorageId(event.value));
    } else if (event.kind == EventKind::kFree) {
      live -= sizes.storage(StorageId(event.value));
    } else if (event.kind == EventKind::kOperator) {
      work.clear();
      append_work(step, step.operators[event.value], sizes, work);
      for (const Work& w : work) (backward ? totals.backward : totals.forward) += w.flops;
    }
  }
  return totals;
}

}  // namespace stoker
