#include "input/loader/loader_streams.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace stoker {
namespace {

/// Mean times of two workers' samples closer than this are one time measured twice.
constexpr double kAlike = 1.25;

Seconds mean_time(const StreamCost& stream) {
  Seconds sum;
  for (std::size_t i = 0; i < stream.cpu.size(); ++i)
    sum += as_seconds(stream.cpu[i]) + (i < stream.wait.size() ? as_seconds(stream.wait[i]) : 0_s);
  return stream.cpu.empty() ? 0_s : sum / static_cast<double>(stream.cpu.size());
}

bool costs_differ(const StreamSet& set) {
  Seconds least, most;
  for (const StreamCost& stream : set.workers) {
    if (stream.cpu.empty()) continue;
    const Seconds mean = mean_time(stream);
    least = most == 0_s ? mean : std::min(least, mean);
    most = std::max(most, mean);
  }
  return most > kAlike * least;
}

bool starts_slowly(const StreamSet& set) {
  return std::any_of(set.workers.begin(), set.workers.end(),
                     [](const StreamCost& stream) { return stream.start.count() > 0; });
}

bool all_lengths_known(const StreamSet& set) {
  return std::all_of(set.workers.begin(), set.workers.end(),
                     [](const StreamCost& stream) { return stream.samples >= 0; });
}

/// `samples` in whole units, as evenly as these allow.
std::vector<std::int64_t> by_units(std::int64_t samples, std::int64_t units, int workers) {
  std::vector<std::int64_t> lengths;
  std::int64_t given = 0, units_given = 0;
  for (int w = 0; w < workers; ++w) {
    units_given += units / workers + (w < units % workers ? 1 : 0);
    const auto until =
        static_cast<std::int64_t>(static_cast<double>(samples) * static_cast<double>(units_given) /
                                  static_cast<double>(units));
    lengths.push_back(until - given);
    given = until;
  }
  return lengths;
}

}  // namespace

std::int64_t work_units(const SampleCost& cost) {
  if (cost.work_units > 0) return cost.work_units;
  for (const StreamSet& set : cost.streams) {
    const auto idle = std::count_if(set.workers.begin(), set.workers.end(),
                                    [](const StreamCost& stream) { return stream.samples == 0; });
    if (idle > 0) return static_cast<std::int64_t>(set.workers.size()) - idle;
  }
  return 0;
}

const StreamSet* streams_of(const SampleCost& cost, int workers) {
  if (workers < 2 || cost.streams.empty()) return nullptr;
  return &*std::min_element(cost.streams.begin(), cost.streams.end(),
                            [&](const StreamSet& a, const StreamSet& b) {
                              const auto far = [&](const StreamSet& set) {
                                return std::abs(static_cast<int>(set.workers.size()) - workers);
                              };
                              return far(a) < far(b);
                            });
}

std::vector<std::int64_t> stream_lengths(const SampleCost& cost, int workers,
                                         std::int64_t samples) {
  const StreamSet* set = streams_of(cost, workers);
  if (set != nullptr && set->same)
    return std::vector<std::int64_t>(static_cast<std::size_t>(workers), samples);
  if (set != nullptr && static_cast<int>(set->workers.size()) == workers &&
      all_lengths_known(*set)) {
    std::vector<std::int64_t> lengths;
    for (const StreamCost& stream : set->workers) lengths.push_back(stream.samples);
    const auto all = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    if (all > 0) {
      const double scale = static_cast<double>(samples) / static_cast<double>(all);
      for (std::int64_t& length : lengths)
        length = std::llround(scale * static_cast<double>(length));
      return lengths;
    }
  }
  const std::int64_t units = work_units(cost);
  return by_units(samples, units > 0 ? units : samples, workers);
}

void fill_streams(const LoaderSettings& settings, const SampleCost& cost, double cpu_scale,
                  LoaderModel& model) {
  if (!reads_streams(cost, settings.workers)) return;
  const std::int64_t units = work_units(cost);
  const StreamSet* set = streams_of(cost, settings.workers);
  const bool own = set != nullptr && (costs_differ(*set) || starts_slowly(*set));
  const bool idle = units > 0 && units < settings.workers;
  if (!own && !idle) return;
  for (int w = 0; w < settings.workers; ++w)
    model.streams.push_back(idle && w >= units ? 0 : kEndlessStream);
  if (!own) return;
  for (int w = 0; w < settings.workers; ++w) {
    const StreamCost& stream = set->workers[static_cast<std::size_t>(w) % set->workers.size()];
    std::vector<Seconds> cpu, wait;
    for (const Nanos time : stream.cpu) cpu.push_back(cpu_scale * as_seconds(time));
    for (const Nanos time : stream.wait) wait.push_back(as_seconds(time));
    model.worker_samples.push_back(SampleDeck::in_order(cpu, wait));
    model.stream_start.push_back(as_seconds(stream.start));
  }
}

}  // namespace stoker
