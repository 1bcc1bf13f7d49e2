#include "observe/record/sample_block.h"

#include <map>

#include "observe/record/fields.h"
#include "observe/record/varint.h"

namespace stoker::record {
namespace {

/// No list of a sample is longer; a number above it is damage.
constexpr std::uint64_t kMostEntries = 1 << 20;

/// Numbers may be anything: differences wrap, so that their sums give the numbers back.
std::int64_t wrapped_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t wrapped_difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

template <class Each>
std::uint64_t count_fields(Each each) {
  std::uint64_t count = 0;
  each([&](const auto&) { ++count; });
  return count;
}

/// What the differences are taken to: the last state of every process, the machine and each GPU.
struct Base {
  std::int64_t at_ns = 0;
  std::map<std::uint32_t, ProcessSample> processes;
  HostSample host;
  std::vector<GpuSample> gpus;
};

/// Calls visit(value, base) for pairs of fields.
template <class Value, class BaseValue, class EachOf, class Visit>
void each_pair(Value& value, BaseValue& base, EachOf each, Visit visit) {
  std::vector<std::int64_t> bases;
  each(base, [&](const std::int64_t& field) { bases.push_back(field); });
  std::size_t i = 0;
  each(value, [&](auto& field) { visit(field, bases[i++]); });
}

constexpr auto kProcess = [](auto& p, auto visit) { each_field(p, visit); };
constexpr auto kHost = [](auto& h, auto visit) { each_host_field(h, visit); };
constexpr auto kGpu = [](auto& g, auto visit) { each_gpu_field(g, visit); };

template <class Value, class EachOf>
void put_fields(std::string& out, const Value& value, const Value& base, EachOf each) {
  each_pair(value, base, each, [&](const std::int64_t& field, std::int64_t before) {
    put_signed(out, wrapped_difference(field, before));
  });
}

/// Takes `written` fields, of which this reader knows the first.
template <class Value, class EachOf>
void take_fields(Varints& in, std::uint64_t written, Value& value, const Value& base, EachOf each) {
  std::uint64_t taken = 0;
  each_pair(value, base, each, [&](std::int64_t& field, std::int64_t before) {
    if (taken >= written) return;
    field = wrapped_sum(before, in.take_signed());
    ++taken;
  });
  for (; taken < written && in.good(); ++taken) in.take_signed();
}

void put_looks(std::string& out, const Looks& looks, const Looks& base) {
  for (std::size_t i = 0; i < kWaitKinds; ++i)
    put_signed(out, std::int64_t{looks.count[i]} - std::int64_t{base.count[i]});
}

void take_looks(Varints& in, std::uint64_t kinds, Looks& looks, const Looks& base) {
  for (std::uint64_t i = 0; i < kinds; ++i) {
    const std::int64_t grown = in.take_signed();
    if (i < kWaitKinds)
      looks.count[i] = static_cast<std::uint32_t>(wrapped_sum(std::int64_t{base.count[i]}, grown));
  }
}

struct Widths {
  std::uint64_t process = 0, host = 0, gpu = 0, kinds = 0;
};

Widths own_widths() {
  ProcessSample p;
  HostSample h;
  GpuSample g;
  return {count_fields([&](auto visit) { each_field(p, visit); }),
          count_fields([&](auto visit) { each_host_field(h, visit); }),
          count_fields([&](auto visit) { each_gpu_field(g, visit); }), kWaitKinds};
}

void put_sample(std::string& out, const Sample& sample, Base& base) {
  put_signed(out, wrapped_difference(sample.at_ns, base.at_ns));
  base.at_ns = sample.at_ns;
  put(out, sample.processes.size());
  for (const ProcessSample& p : sample.processes) {
    ProcessSample& before = base.processes[p.serial];
    put(out, p.serial);
    put(out, p.alive ? 1 : 0);
    put_fields(out, p, before, kProcess);
    put_looks(out, p.looks, before.looks);
    put_looks(out, p.pin_looks, before.pin_looks);
    before = p;
  }
  put(out, sample.has_host ? 1 : 0);
  if (sample.has_host) {
    put_fields(out, sample.host, base.host, kHost);
    base.host = sample.host;
  }
  put(out, sample.gpus.size());
  base.gpus.resize(std::max(base.gpus.size(), sample.gpus.size()));
  for (std::size_t i = 0; i < sample.gpus.size(); ++i) {
    put_fields(out, sample.gpus[i], base.gpus[i], kGpu);
    base.gpus[i] = sample.gpus[i];
  }
}

bool take_sample(Varints& in, const Widths& widths, Base& base, Sample& sample) {
  sample.at_ns = wrapped_sum(base.at_ns, in.take_signed());
  base.at_ns = sample.at_ns;
  const std::uint64_t processes = in.take();
  if (processes > kMostEntries) return false;
  for (std::uint64_t i = 0; i < processes && in.good(); ++i) {
    ProcessSample p;
    p.serial = static_cast<std::uint32_t>(in.take());
    p.alive = in.take() != 0;
    ProcessSample& before = base.processes[p.serial];
    take_fields(in, widths.process, p, before, kProcess);
    take_looks(in, widths.kinds, p.looks, before.looks);
    take_looks(in, widths.kinds, p.pin_looks, before.pin_looks);
    before = p;
    sample.processes.push_back(p);
  }
  sample.has_host = in.take() != 0;
  if (sample.has_host) {
    take_fields(in, widths.host, sample.host, base.host, kHost);
    base.host = sample.host;
  }
  const std::uint64_t gpus = in.take();
  if (gpus > kMostEntries) return false;
  for (std::uint64_t i = 0; i < gpus && in.good(); ++i) {
    if (base.gpus.size() <= i) base.gpus.emplace_back();
    GpuSample g;
    take_fields(in, widths.gpu, g, base.gpus[i], kGpu);
    base.gpus[i] = g;
    sample.gpus.push_back(g);
  }
  return in.good();
}

}  // namespace

std::string encode_samples(const std::vector<Sample>& samples) {
  std::string out;
  const Widths widths = own_widths();
  for (const std::uint64_t number :
       {widths.process, widths.host, widths.gpu, widths.kinds, std::uint64_t{samples.size()}})
    put(out, number);
  Base base;
  for (const Sample& sample : samples) put_sample(out, sample, base);
  return out;
}

std::optional<std::vector<Sample>> decode_samples(std::string_view bytes) {
  Varints in(bytes);
  Widths widths;
  widths.process = in.take();
  widths.host = in.take();
  widths.gpu = in.take();
  widths.kinds = in.take();
  const std::uint64_t count = in.take();
  constexpr std::uint64_t kMostFields = 4096;
  const bool sane = in.good() && count <= kMostEntries && widths.process <= kMostFields &&
                    widths.host <= kMostFields && widths.gpu <= kMostFields &&
                    widths.kinds <= kMostFields;
  if (!sane) return std::nullopt;
  std::vector<Sample> samples;
  Base base;
  for (std::uint64_t i = 0; i < count; ++i) {
    Sample sample;
    if (!take_sample(in, widths, base, sample)) return std::nullopt;
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace stoker::record
