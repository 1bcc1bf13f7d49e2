#include "diagnosis/trace/ranks_diagnosis.h"

#include <algorithm>
#include <map>

#include "base/counted.h"
#include "diagnosis/timeline/times.h"
#include "diagnosis/trace/rank_files.h"
#include "diagnosis/trace/rank_match.h"
#include "diagnosis/trace/rank_rules.h"
#include "diagnosis/trace/trace_rules.h"

namespace stoker {
namespace {

constexpr std::size_t kMostKinds = 8;

/// The mean of both in the middle where there are two.
double middle_of(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  const auto upper = static_cast<double>(values[half]);
  return values.size() % 2 == 1 ? upper : (upper + static_cast<double>(values[half - 1])) / 2;
}

double steps_of(const RankTrace& trace) {
  return static_cast<double>(std::max<std::int64_t>(1, trace.diagnosis.steps));
}

/// Who came last to what, and how late each was, over all collectives that were matched.
class Account {
 public:
  Account(const std::vector<RankTrace>& ranks, const RankMatch& match)
      : ranks_(ranks), tallies_(ranks.size()), more_(ranks.size()) {
    for (const MatchedCollective& c : match.collectives) add(c);
  }

  void fill(std::size_t r, RankShares& shares) const {
    const Tally& tally = tallies_[r];
    const double steps = steps_of(ranks_[r]);
    const TimeSpan window = ranks_[r].window;
    const SpanSet whole({window}), transfer = SpanSet(tally.transfer).shared(whole);
    shares.transfer = share_of_window(transfer.length(), window);
    shares.waiting =
        share_of_window(SpanSet(tally.waiting).shared(whole).without(transfer).length(), window);
    shares.waiting_all_s = at_seconds(tally.waiting_all) / steps;
    shares.transfer_all_s = at_seconds(tally.transfer_all) / steps;
    shares.collectives = tally.collectives;
    shares.last_at = tally.last_at;
    shares.behind_s = tally.behind_ns / kNanosASecond / steps;
    shares.blamed = waited_ > 0 ? tally.blamed / waited_ : 0;
  }

  [[nodiscard]] std::vector<CollectiveTimes> kinds() const {
    std::vector<CollectiveTimes> all;
    for (const auto& [name, kind] : kinds_) {
      CollectiveTimes k;
      k.kind = name;
      k.count = kind.count;
      const auto members = static_cast<double>(kind.members);
      k.transfer_s = at_seconds(kind.transfer) / members;
      k.waiting_s = at_seconds(kind.waiting) / members;
      for (const auto& [rank, times] : kind.last)
        if (times > k.of_them) k.often_last = *ranks_[rank].rank, k.of_them = times;
      all.push_back(std::move(k));
    }
    const auto in_all = [](const CollectiveTimes& k) {
      return (k.transfer_s + k.waiting_s) * static_cast<double>(k.count);
    };
    std::ranges::stable_sort(all,
                             [&](const auto& a, const auto& b) { return in_all(a) > in_all(b); });
    if (all.size() > kMostKinds) all.resize(kMostKinds);
    return all;
  }

  /// What a rank does more than the others before the collectives that it comes to last.
  [[nodiscard]] std::vector<Straggler::Cause> causes(std::size_t r) const {
    std::vector<Straggler::Cause> causes;
    for (std::size_t work = 0; work < kRankWork; ++work) {
      const double more = more_[r][work] / kNanosASecond / steps_of(ranks_[r]);
      if (more > 0) causes.push_back({work, more});
    }
    const double before = tallies_[r].before_trace_ns / kNanosASecond / steps_of(ranks_[r]);
    if (before > 0) causes.push_back({kRankWork, before});
    std::ranges::stable_sort(causes,
                             [](const auto& a, const auto& b) { return a.more_s > b.more_s; });
    return causes;
  }

 private:
  struct Tally {
    std::vector<TimeSpan> waiting, transfer;  ///< with nothing computed beside
    std::int64_t waiting_all = 0, transfer_all = 0, collectives = 0, last_at = 0;
    double behind_ns = 0, blamed = 0, before_trace_ns = 0;
  };
  struct Kind {
    std::int64_t count = 0, members = 0, transfer = 0, waiting = 0;
    std::map<std::size_t, std::int64_t> last;
  };

  [[nodiscard]] const RankCollective& of(const MatchedCollective::Member& m) const {
    return ranks_[m.rank].collectives[m.collective];
  }

  void add(const MatchedCollective& c) {
    const RankTrace& first = ranks_[c.members.front().rank];
    Kind& kind = kinds_[kind_of_key(first.keys[of(c.members.front()).key])];
    ++kind.count;
    const auto last =
        std::ranges::min_element(c.members, {}, [&](const auto& m) { return of(m).time.length(); });
    ++tallies_[last->rank].last_at;
    ++kind.last[last->rank];
    for (const auto& m : c.members) {
      const RankCollective& one = of(m);
      const std::int64_t waiting = one.time.length() - c.transfer;
      Tally& tally = tallies_[m.rank];
      ++tally.collectives;
      tally.waiting_all += waiting;
      tally.transfer_all += c.transfer;
      const std::int64_t arrived = one.time.start + waiting;
      for (const TimeSpan& alone : one.alone) {
        tally.waiting.push_back({alone.start, std::min(alone.end, arrived)});
        tally.transfer.push_back({std::max(alone.start, arrived), alone.end});
      }
      ++kind.members;
      kind.transfer += c.transfer;
      kind.waiting += waiting;
      waited_ += static_cast<double>(waiting);
      tallies_[last->rank].blamed += static_cast<double>(waiting);
    }
    compare(c, *last);
  }

  /// How much less than the median of the others `value` is for a rank of the collective.
  template <class Value>
  [[nodiscard]] double below_others(const MatchedCollective& c, const MatchedCollective::Member& m,
                                    Value value) const {
    std::vector<std::int64_t> others;
    for (const auto& other : c.members)
      if (other.rank != m.rank) others.push_back(value(of(other)));
    return middle_of(std::move(others)) - static_cast<double>(value(of(m)));
  }

  /// How late each was, and what the last one did more than the median of the others.
  void compare(const MatchedCollective& c, const MatchedCollective::Member& last) {
    const auto late = [&](const MatchedCollective::Member& m) {
      return std::max(
          0.0, below_others(c, m, [](const RankCollective& one) { return one.time.length(); }));
    };
    for (const auto& m : c.members) tallies_[m.rank].behind_ns += late(m);
    double explained = 0;
    for (std::size_t work = 0; work < kRankWork; ++work) {
      const double more =
          -below_others(c, last, [&](const RankCollective& one) { return one.before[work]; });
      more_[last.rank][work] += more;
      explained += std::max(0.0, more);
    }
    if (last.collective == 0)
      tallies_[last.rank].before_trace_ns += std::max(0.0, late(last) - explained);
  }

  const std::vector<RankTrace>& ranks_;
  std::vector<Tally> tallies_;
  std::vector<std::array<double, kRankWork>> more_;
  std::map<std::string, Kind> kinds_;
  double waited_ = 0;
};

RankShares shares_of(const RankTrace& trace) {
  const TraceDiagnosis& d = trace.diagnosis;
  RankShares shares;
  shares.rank = *trace.rank;
  shares.file = trace.file;
  shares.seconds = d.seconds;
  shares.step_s = d.step_s;
  shares.steps = d.steps;
  shares.compute = d.compute;
  shares.copies = d.copies;
  shares.idle = d.device ? d.idle : std::max(0.0, 1 - d.compute - d.communication);
  shares.findings = d.findings;
  return shares;
}

/// One causes most of what is waited for, by far more than an even share.
void find_straggler(const Account& account, RanksDiagnosis& d) {
  const auto most = std::ranges::max_element(d.ranks, {}, &RankShares::blamed);
  const double even = 1.0 / static_cast<double>(d.ranks.size());
  if (d.ranks.size() < 2 || most->blamed < (1 + even) / 2) return;
  Straggler straggler;
  straggler.rank = most->rank;
  straggler.behind_s = most->behind_s;
  const auto index = static_cast<std::size_t>(most - d.ranks.begin());
  straggler.causes = account.causes(index);
  d.straggler = std::move(straggler);
}

}  // namespace

RanksDiagnosis diagnose_ranks(std::vector<RankTrace> traces, std::vector<std::string> notes) {
  RanksDiagnosis d;
  RankSet set = rank_set(std::move(traces));
  d.world_size = set.world_size;
  d.missing = std::move(set.missing);
  d.notes = std::move(notes);
  d.notes.insert(d.notes.end(), set.notes.begin(), set.notes.end());
  const RankMatch match = match_collectives(set.ranks);
  d.matched = static_cast<std::int64_t>(match.collectives.size());
  d.alone = match.alone;
  const Account account(set.ranks, match);
  const auto many = static_cast<double>(set.ranks.size());
  std::vector<std::int64_t> steps_ns;
  d.gpus = false;
  for (std::size_t r = 0; r < set.ranks.size(); ++r) {
    const RankTrace& trace = set.ranks[r];
    RankShares shares = shares_of(trace);
    account.fill(r, shares);
    shares.other_communication =
        std::max(0.0, trace.diagnosis.communication - shares.waiting - shares.transfer);
    d.compute += shares.compute / many;
    d.copies += shares.copies / many;
    d.idle += shares.idle / many;
    d.waiting += shares.waiting / many;
    d.transfer += shares.transfer / many;
    d.point_to_point += trace.point_to_point;
    d.gpus = d.gpus || trace.diagnosis.device.has_value();
    d.per_step = d.per_step && trace.diagnosis.steps > 0;
    if (shares.step_s > 0)
      steps_ns.push_back(static_cast<std::int64_t>(shares.step_s * kNanosASecond));
    d.ranks.push_back(std::move(shares));
  }
  d.step_s = middle_of(std::move(steps_ns)) / kNanosASecond;
  d.kinds = account.kinds();
  find_straggler(account, d);
  add_rank_findings(d);
  if (d.alone > 0)
    d.notes.push_back(counted(d.alone, "collective") +
                      " of single ranks have no counterpart on another: not told apart");
  if (d.point_to_point > 0)
    d.notes.push_back(counted(d.point_to_point, "send or receive") +
                      " between two ranks: not matched");
  return d;
}

}  // namespace stoker
