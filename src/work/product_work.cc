#include "work/describer.h"
#include "work/real.h"

namespace stoker {
namespace {

/// Multiplications and additions of a product count two.
Flops product_flops(const GemmShape& g) {
  return Flops(2.0 * real(g.batch) * real(g.m) * real(g.n) * real(g.k));
}

/// Sums weights times the states of one layer's directions over all time steps.
double layer_flops(const RnnShape& r, double inputs) {
  const double state = real(r.projection > 0 ? r.projection : r.hidden);
  const double rows = real(r.batch) * real(r.length) * r.directions;
  double flops = 2 * rows * real(r.hidden) * r.gates * (inputs + state);
  if (r.projection > 0) flops += 2 * rows * real(r.hidden) * state;
  return flops;
}

}  // namespace

void append_gemm(const Describer& d, std::vector<Work>& into) {
  Work work = d.base(KernelClass::kGemm);
  const auto& in = d.inputs();
  const bool linear = d.rule() == WorkRule::kLinear;
  // addmm, baddbmm, addmv carry the addend first; the factors are the next two.
  const bool summed_batch = d.rule() == WorkRule::kSummedBatch;
  const bool adds = (d.rule() == WorkRule::kProductAndSum || summed_batch) && in.size() >= 3;
  const std::size_t first = adds ? 1 : 0;
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
  g.k = sa.empty() ? 1 : sa.back();
  if (summed_batch) {  // sums over the batch: one product with a long k
    if (sa.size() == 3 && sb.size() == 3) g.m = sa[1], g.n = sb[2], g.k = sa[0] * sa[2];
  } else if (sa.size() == 3 && sb.size() == 3 && !linear) {
    g.batch = sa[0];
    g.m = sa[1];
    g.n = sb[2];
  } else {
    g.m = g.k > 0 ? d.elements(a) / g.k : 0;
    g.n = g.k > 0 ? d.elements(b) / g.k : 0;
    if (linear) g.transpose_b = true;  // weight is [out, in]
  }
  work.dtype = d.dtype(a);
  work.flops = product_flops(g);
  work.shape = g;
  into.push_back(work);
}

void append_attention(const Describer& d, std::vector<Work>& into) {
  Work work = d.base(KernelClass::kAttention);
  const auto& in = d.inputs();
  const bool backward = d.is_backward();
  const std::size_t q = backward ? 1 : 0;
  if (in.size() < q + 3 || d.shape(in[q]).size() != 4 || d.shape(in[q + 1]).size() != 4 ||
      d.shape(in[q + 2]).size() != 4) {
    work.kernel_class = KernelClass::kUncosted;
    into.push_back(work);
    return;
  }
  const auto query = d.shape(in[q]);
  const auto key = d.shape(in[q + 1]);
  // The kernels behind the dispatcher take [batch, length, heads, width].
  const bool inner = d.rule() == WorkRule::kAttentionInside;
  const std::size_t heads = inner ? 2 : 1, length = inner ? 1 : 2;
  AttentionShape s;
  s.batch = query[0];
  s.heads = query[heads];
  s.key_heads = key[heads];
  s.query_length = query[length];
  s.key_length = key[length];
  s.head_dim = query[3];
  s.value_dim = d.shape(in[q + 2])[3];
  s.causal = d.attributes().causal;
  if (const auto& window = d.attributes().window; window.size() == 2) {
    s.before = window[0];
    s.after = window[1];
  }
  s.dropout = d.attributes().dropout > 0;
  s.backward = backward;
  // Scores and their product with v; backward makes the scores again, then the gradients of the
  // scores and of v (width of v) and those of q and k (width of q).
  const double widths = backward ? 3 * real(s.head_dim) + 2 * real(s.value_dim)
                                 : real(s.head_dim) + real(s.value_dim);
  work.flops = Flops(2 * widths * real(s.batch) * real(s.heads) * s.pairs());
  work.dtype = d.dtype(in[q]);
  work.shape = s;
  into.push_back(work);
}

void append_rnn(const Describer& d, std::vector<Work>& into) {
  Work work = d.base(KernelClass::kRnn);
  const Attributes& a = d.attributes();
  RnnShape r;
  r.backward = d.is_backward();
  r.hidden = a.hidden;
  r.layers = a.layers;
  r.directions = a.bidirectional ? 2 : 1;
  r.gates = a.rnn_mode == "lstm" ? 4 : a.rnn_mode == "gru" ? 3 : 1;
  const auto& in = d.inputs();
  if (!in.empty() && d.shape(in[0]).size() == 3) {
    // Time-major inside, whatever batch_first says of the caller's tensor.
    const auto shape = d.shape(in[0]);
    r.length = shape[a.batch_first ? 1 : 0];
    r.batch = shape[a.batch_first ? 0 : 1];
    r.input = shape[2];
  } else if (in.size() > 2 && d.shape(in[0]).size() == 2 && d.shape(in[2]).size() == 3) {
    // Packed: all words of all sequences, one below the other; the states tell how many sequences.
    const auto shape = d.shape(in[0]);
    r.batch = d.shape(in[2])[1];
    r.length = r.batch > 0 ? (shape[0] + r.batch - 1) / r.batch : 0;
    r.input = shape[1];
  }
  // input, weights, state: the width of the state tells whether it is projected.
  if (in.size() > 2 && !d.shape(in[2]).empty() && d.shape(in[2]).back() < r.hidden)
    r.projection = d.shape(in[2]).back();
  const std::int64_t state = r.projection > 0 ? r.projection : r.hidden;
  double flops = layer_flops(r, real(r.input)) +
                 real(r.layers - 1) * layer_flops(r, real(state * r.directions));
  if (r.backward) flops *= 2;  // gradients of inputs and of weights
  work.flops = Flops(flops);
  work.shape = r;
  into.push_back(work);
}

}  // namespace stoker
