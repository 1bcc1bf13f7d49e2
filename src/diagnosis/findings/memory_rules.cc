#include <fmt/format.h>

#include "base/saturating.h"
#include "base/text.h"
#include "diagnosis/findings/job_case.h"
#include "diagnosis/timeline/times.h"

namespace stoker::findings {
namespace {

/// Seconds; a shorter stretch is the rest at the end of a watch.
constexpr double kLeastStretch = 0.5;
/// Nearly full, as a share.
constexpr double kNearlyFull = 0.85;

std::string size(double bytes) { return human_bytes(Bytes(saturating_whole(bytes))); }

/// A straight line through the memory of the later two thirds of the loop's stretches.
struct Growth {
  double a_second = 0;  ///< bytes
  double grown = 0;     ///< bytes over the part looked at
  double straight = 0;  ///< r squared
  double seconds = 0;
};

Growth growth_of(const std::vector<Stretch>& all, double from) {
  std::vector<std::pair<double, double>> points;
  // What importing takes is no growth.
  const auto begin = std::ranges::lower_bound(all, from, std::less<>(), &Stretch::from);
  const auto first = static_cast<std::size_t>(begin - all.begin());
  for (std::size_t i = first + (all.size() - first) / 3; i < all.size(); ++i) {
    if (all[i].memory > 0 && all[i].seconds > kLeastStretch)
      points.emplace_back(all[i].from + all[i].seconds, all[i].memory);
  }
  // A job that ends gives its memory back, in its last seconds.
  constexpr double kGivenBack = 0.9;
  constexpr int kLast = 3;
  double most = 0;
  for (const auto& [at, bytes] : points) most = std::max(most, bytes);
  for (int i = 0; i < kLast && !points.empty() && points.back().second < kGivenBack * most; ++i)
    points.pop_back();
  Growth g;
  constexpr std::size_t kFewest = 8;
  if (points.size() < kFewest) return g;
  double x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  const auto n = static_cast<double>(points.size());
  for (const auto& [at, bytes] : points) x += at / n, y += bytes / n;
  for (const auto& [at, bytes] : points) {
    xx += (at - x) * (at - x);
    xy += (at - x) * (bytes - y);
    yy += (bytes - y) * (bytes - y);
  }
  if (xx <= 0 || yy <= 0) return g;
  g.a_second = xy / xx;
  g.straight = xy * xy / (xx * yy);
  g.seconds = points.back().first - points.front().first;
  g.grown = g.a_second * g.seconds;
  return g;
}

void add_growth(const JobCase& c, std::vector<JobFinding>& out) {
  double from = 0;
  for (const RankTimeline& rank : c.ranks) from = std::max(from, rank.from);
  const Growth g = growth_of(c.timeline.stretches(), from);
  const HostSample& host = c.timeline.last_host();
  double left = static_cast<double>(host.memory_available);
  if (host.group_memory_most > 0)
    left = std::min(
        left, static_cast<double>(host.group_memory_most) - static_cast<double>(host.group_memory));
  constexpr double kLeastGrowth = 40e6, kStraight = 0.8, kLeastSeconds = 10;
  constexpr double kSoon = 14 * 24 * 3600.0;
  if (g.grown < kLeastGrowth || g.straight < kStraight || g.seconds < kLeastSeconds || left <= 0)
    return;
  const double until = left / g.a_second;
  if (until > kSoon) return;
  JobFinding f;
  f.name = "memory_grows";
  f.lost = 0;
  f.evidence = fmt::format(
      "The job's own memory grew by {} in {}, steadily; at that pace the {} that are left are "
      "gone in {}.",
      size(g.grown), human_time(Nanos(g.seconds * kNanosASecond)), size(left),
      human_time(Nanos(until * kNanosASecond)));
  f.cure = c.workers_each > 0
               ? "keep the data set's lists as numpy arrays or tensors, which workers do not copy "
                 "by reading; look for results that are kept with their graph (loss without "
                 ".item() or .detach())."
               : "look for results that are kept with their graph: loss without .item() or "
                 ".detach(), lists that grow.";
  f.confidence = Confidence::kMedium;
  out.push_back(std::move(f));
}

void add_shared_memory(const JobCase& c, std::vector<JobFinding>& out) {
  const HostSample& host = c.timeline.last_host();
  if (host.shared_memory_most <= 0) return;
  const double full = c.timeline.shared_memory_full();
  if (full < kNearlyFull) return;
  JobFinding f;
  f.name = "shared_memory_nearly_full";
  const auto most = static_cast<double>(host.shared_memory_most);
  f.evidence = fmt::format(
      "Shared memory (/dev/shm), through which workers hand over batches, held "
      "{} of {}; workers die with a bus error when it is full.",
      size(full * most), size(most));
  f.cure =
      "a larger one (docker --shm-size; on Kubernetes an emptyDir of medium Memory), a smaller "
      "prefetch_factor, or fewer workers.";
  f.setting = "--shm-size";
  f.confidence = Confidence::kHigh;
  out.push_back(std::move(f));
}

void add_open_files(const JobCase& c, std::vector<JobFinding>& out) {
  for (const ProcessSample& p : c.timeline.last().processes) {
    if (p.open_files_most <= 0 || p.serial == 0) continue;
    if (p.serial > c.timeline.processes().size()) continue;
    const double full = static_cast<double>(p.open_files) / static_cast<double>(p.open_files_most);
    if (full < kNearlyFull) continue;
    JobFinding f;
    f.name = "open_files_nearly_used_up";
    f.evidence =
        fmt::format("Process {} has {} of {} files open.", c.timeline.processes()[p.serial - 1].pid,
                    p.open_files, p.open_files_most);
    f.cure = "ulimit -n 65536, or torch.multiprocessing.set_sharing_strategy('file_system').";
    f.setting = "ulimit -n";
    f.confidence = Confidence::kHigh;
    out.push_back(std::move(f));
    return;
  }
}

void add_swapping(const JobCase& c, std::vector<JobFinding>& out) {
  const HostSample& first = c.timeline.first_host();
  const HostSample& last = c.timeline.last_host();
  const double pages = grown(first.swap_in_pages, last.swap_in_pages);
  const double seconds = std::max(1e-9, c.timeline.host_seconds());
  constexpr double kSwaps = 50;  // pages a second
  if (pages / seconds < kSwaps) return;
  JobFinding f;
  f.name = "swapping";
  f.lost = grown_seconds(first.memory_pressure_ns, last.memory_pressure_ns) / seconds;
  f.evidence = fmt::format(
      "{:.0f} pages a second come back from swap; processes stood still for "
      "memory {:.0f} % of the time.",
      pages / seconds, 100 * f.lost);
  f.cure = "less memory: fewer workers, a smaller batch; or a machine with more.";
  f.confidence = Confidence::kHigh;
  out.push_back(std::move(f));
}

}  // namespace

void memory_rules(const JobCase& c, std::vector<JobFinding>& out) {
  add_growth(c, out);
  add_shared_memory(c, out);
  add_open_files(c, out);
  add_swapping(c, out);
}

}  // namespace stoker::findings
