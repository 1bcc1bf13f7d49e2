#include "input/loader/shared_resource.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

/// Times below this are rounding.
constexpr Seconds kNothing = 1e-12_s;
/// Periods of a quota that are gone through one by one; of more, which only damaged or mistyped
/// times make, the whole ones are passed at once.
constexpr double kMostPeriods = 10'000;

}  // namespace

SharedResource::Rates SharedResource::rates_at(std::size_t first_jobs,
                                               std::size_t even_jobs) const {
  const auto first = static_cast<double>(first_jobs);
  const auto even = static_cast<double>(even_jobs);
  const double n = first + even;
  Rates rates;
  if (n == 0) return rates;
  rates.in_use = std::min(capacity_, n);
  const double crowding = std::clamp(n / capacity_ - 1, 0.0, 1.0);
  const double loss =
      1 + slowdown_ * std::max(0.0, rates.in_use - 1) + oversubscription_ * crowding;
  if (first > 0) rates.first = std::min(1.0, capacity_ / first) / loss;
  const double rest = std::max(0.0, capacity_ - first);
  if (even > 0) rates.even = std::min(1.0, rest / even) / loss;
  return rates;
}

const SharedResource::Rates& SharedResource::rates() const {
  if (!changed_) return rates_;
  changed_ = false;
  const std::size_t first = first_.jobs.size(), even = even_.jobs.size();
  if (first >= known_.size()) return rates_ = rates_at(first, even);
  std::vector<Rates>& known = known_[first];
  if (even >= known.size()) known.resize(2 * even + 8);
  if (known[even].in_use == 0) known[even] = rates_at(first, even);
  return rates_ = known[even];
}

Seconds SharedResource::until_end() const {
  Seconds span = kNeverEnds;
  const auto consider = [&](const Queue& queue, double rate) {
    if (queue.jobs.empty()) return;
    const Seconds work = std::max(0_s, queue.jobs.top().first - queue.served);
    if (work == 0_s) span = 0_s;
    if (rate > 0) span = std::min(span, work / rate);
  };
  consider(even_, rates().even);
  consider(first_, rates().first);
  return span;
}

void SharedResource::work(Seconds span) {
  even_.served += span * rates().even;
  first_.served += span * rates().first;
  busy_ += span * rates().in_use;
}

void SharedResource::advance(Seconds now) {
  if (now <= now_) return;
  if (quota_.cores <= 0 || rates().in_use == 0) {
    work(now - now_);
    now_ = now;
    return;
  }
  while (now_ < now) {
    if (now_ >= period_end_) {
      if (const double periods = std::floor((now - now_) / quota_.period); periods > kMostPeriods) {
        work((periods - 1) * std::min(quota_.period, in_a_period()));
        now_ += (periods - 1) * quota_.period;
      }
      period_end_ = now_ + quota_.period;
      if (period_end_ <= now_) {  // too late a time for a period to be told from none
        work(now - now_);
        now_ = now;
        return;
      }
      left_ = quota_.cores * quota_.period;
    }
    const Seconds exhausted = now_ + left_ / rates().in_use;
    const Seconds until = std::min({now, exhausted, period_end_});
    work(until - now_);
    left_ = std::max(0_s, left_ - (until - now_) * rates().in_use);
    now_ = until;
    if (until == exhausted && until < period_end_) {  // stands still until the next period
      left_ = 0_s;
      now_ = std::min(now, period_end_);
    }
  }
}

void SharedResource::start(Seconds now, std::uint32_t job, Seconds work, Class served) {
  advance(now);
  Queue& queue = served == Class::kFirst ? first_ : even_;
  queue.jobs.emplace(queue.served + std::max(0_s, work), job);
  changed_ = true;
}

Seconds SharedResource::next_end(Seconds now) const {
  if (rates().in_use == 0) return kNeverEnds;
  Seconds span = until_end();
  if (quota_.cores <= 0) return std::max(now, now_ + span);
  Seconds at = now_, left = left_, period_end = period_end_;
  while (true) {
    if (at >= period_end) {
      const Seconds run = std::min(quota_.period, in_a_period());
      if (const double periods = std::floor(span / run); periods > kMostPeriods) {
        at += (periods - 1) * quota_.period;
        span -= (periods - 1) * run;
      }
      period_end = at + quota_.period;
      if (period_end <= at) return std::max(now, at + span);
      left = quota_.cores * quota_.period;
    }
    const Seconds run = std::min(left / rates().in_use, period_end - at);
    if (span <= run + kNothing) return std::max(now, at + span);
    span -= run;
    left = 0_s;
    at = period_end;
  }
}

std::uint32_t SharedResource::finish(Seconds now) {
  advance(now);
  // The class whose job is the most finished, of the two: rounding may leave a trace of work.
  const auto remains = [](const Queue& queue) {
    return queue.jobs.empty() ? kNeverEnds : queue.jobs.top().first - queue.served;
  };
  Queue& queue = remains(first_) <= remains(even_) ? first_ : even_;
  const auto [end, job] = queue.jobs.top();
  queue.jobs.pop();
  queue.served = std::max(queue.served, end);
  changed_ = true;
  return job;
}

Seconds SharedResource::busy(Seconds now) {
  advance(now);
  return busy_;
}

}  // namespace stoker
