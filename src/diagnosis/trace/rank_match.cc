#include "diagnosis/trace/rank_match.h"

#include <algorithm>
#include <map>
#include <string>

namespace stoker {
namespace {

using Member = MatchedCollective::Member;
/// A kind of collective on each rank that has it, by time.
using Lists = std::map<std::size_t, std::vector<std::size_t>>;

/// Which of these ends, in order, is nearest to `end`.
std::size_t nearest(const std::vector<std::pair<std::int64_t, std::size_t>>& ends,
                    std::int64_t end) {
  const auto next =
      std::ranges::lower_bound(ends, end, {}, [](const auto& one) { return one.first; });
  if (next == ends.begin()) return next->second;
  const auto before = std::prev(next);
  return next == ends.end() || end - before->first <= next->first - end ? before->second
                                                                        : next->second;
}

class Matcher {
 public:
  explicit Matcher(const std::vector<RankTrace>& ranks) : ranks_(ranks) {}

  RankMatch match() {
    std::map<std::string, Lists> by_key;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (std::size_t i = 0; i < ranks_[r].collectives.size(); ++i)
        by_key[ranks_[r].keys[at(r, i).key]][r].push_back(i);
    for (const auto& [key, lists] : by_key) match_kind(lists);
    std::ranges::stable_sort(result_.collectives, {}, [&](const MatchedCollective& c) {
      return at(c.members.front().rank, c.members.front().collective).time.start;
    });
    return std::move(result_);
  }

 private:
  [[nodiscard]] const RankCollective& at(std::size_t rank, std::size_t collective) const {
    return ranks_[rank].collectives[collective];
  }
  [[nodiscard]] bool all(const Lists& lists, std::int64_t RankCollective::*field) const {
    for (const auto& [rank, list] : lists)
      for (const std::size_t i : list)
        if (at(rank, i).*field < 0) return false;
    return true;
  }

  void add(std::vector<Member> members) {
    if (members.size() < 2) {
      result_.alone += static_cast<std::int64_t>(members.size());
      return;
    }
    MatchedCollective c;
    c.transfer = at(members[0].rank, members[0].collective).time.length();
    for (const Member& m : members)
      c.transfer = std::min(c.transfer, at(m.rank, m.collective).time.length());
    c.members = std::move(members);
    result_.collectives.push_back(std::move(c));
  }

  void match_kind(const Lists& lists) {
    if (all(lists, &RankCollective::sequence)) return by_sequence(lists);
    if (!all(lists, &RankCollective::step)) return by_order(lists);
    std::map<std::int64_t, Lists> by_step;
    for (const auto& [rank, list] : lists)
      for (const std::size_t i : list) by_step[at(rank, i).step][rank].push_back(i);
    for (const auto& [step, part] : by_step) by_order(part);
  }

  void by_sequence(const Lists& lists) {
    // One number may stand for several kernels: then their order tells them apart.
    std::map<std::pair<std::int64_t, std::size_t>, std::vector<Member>> instances;
    for (const auto& [rank, list] : lists) {
      std::map<std::int64_t, std::size_t> seen;
      for (const std::size_t i : list) {
        const std::int64_t sequence = at(rank, i).sequence;
        instances[{sequence, seen[sequence]++}].push_back({rank, i});
      }
    }
    for (auto& [id, members] : instances) add(std::move(members));
  }

  void by_order(const Lists& lists) {
    std::size_t least = lists.begin()->second.size(), most = least;
    for (const auto& [rank, list] : lists) {
      least = std::min(least, list.size());
      most = std::max(most, list.size());
    }
    if (least != most) return by_time(lists);
    for (std::size_t n = 0; n < most; ++n) {
      std::vector<Member> members;
      for (const auto& [rank, list] : lists) members.push_back({rank, list[n]});
      add(std::move(members));
    }
  }

  /// Ranks leave a collective at one moment: of each rank the one that ends nearest.
  void by_time(const Lists& lists) {
    const auto least = std::ranges::min_element(
        lists, {}, [](const auto& rank_and_list) { return rank_and_list.second.size(); });
    std::map<std::size_t, std::vector<bool>> taken;
    std::map<std::size_t, std::vector<std::pair<std::int64_t, std::size_t>>> by_end;
    for (const auto& [rank, list] : lists) {
      taken[rank].resize(list.size());
      for (std::size_t n = 0; n < list.size(); ++n)
        by_end[rank].emplace_back(at(rank, list[n]).time.end, n);
      std::ranges::sort(by_end[rank]);
    }
    for (std::size_t n = 0; n < least->second.size(); ++n) {
      const TimeSpan time = at(least->first, least->second[n]).time;
      std::vector<Member> members;
      for (const auto& [rank, list] : lists) {
        const std::size_t where = rank == least->first ? n : nearest(by_end[rank], time.end);
        const TimeSpan other = at(rank, list[where]).time;
        if (taken[rank][where] || other.start > time.end || time.start > other.end) continue;
        taken[rank][where] = true;
        members.push_back({rank, list[where]});
      }
      add(std::move(members));
    }
    for (const auto& [rank, marks] : taken) result_.alone += std::ranges::count(marks, false);
  }

  const std::vector<RankTrace>& ranks_;
  RankMatch result_;
};

}  // namespace

RankMatch match_collectives(const std::vector<RankTrace>& ranks) { return Matcher(ranks).match(); }

}  // namespace stoker
