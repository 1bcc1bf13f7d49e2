#include "diagnosis/trace/rank_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/counted.h"
#include "trace/trace_origin.h"

namespace stoker {
namespace {

/// Characters of a list, behind which it ends by "...": a line of a note.
constexpr std::size_t kMostShown = 60;

std::string name_of_file(const RankTrace& trace) {
  return std::filesystem::path(trace.file).filename().string();
}

void drop_copies(RankSet& set) {
  std::map<std::uint64_t, std::string> seen;
  std::erase_if(set.ranks, [&](const RankTrace& trace) {
    const auto [at, fresh] = seen.try_emplace(trace.content, trace.file);
    if (!fresh)
      set.notes.push_back(
          fmt::format("{} is {} once more: it counts once", trace.file, at->second));
    return !fresh;
  });
}

/// What the handler of TensorBoard's traces names a file by, before the time: one process.
std::string worker_of(const RankTrace& trace) {
  const std::string name = name_of_file(trace);
  if (name.find(".pt.trace.json") == std::string::npos) return {};
  return name.substr(0, name.find('.'));
}

void number(RankSet& set) {
  std::vector<RankTrace>& ranks = set.ranks;
  std::size_t told = 0;
  for (const RankTrace& trace : ranks) told += trace.rank ? 1 : 0;
  if (told == ranks.size()) return;
  if (told == 0) {
    // As a whole or not at all: names may hold a number that means something else.
    std::vector<std::optional<std::int64_t>> named;
    for (const RankTrace& trace : ranks) named.push_back(rank_in_name(trace.file));
    if (std::ranges::all_of(named, [](const auto& n) { return n.has_value(); })) {
      for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].rank = named[i];
      return;
    }
    const std::string worker = worker_of(ranks.front());
    if (!worker.empty() && std::ranges::all_of(ranks, [&](const RankTrace& trace) {
          return worker_of(trace) == worker;
        })) {
      for (RankTrace& trace : ranks) trace.rank = 0;
      return;
    }
  }
  std::set<std::int64_t> taken;
  for (const RankTrace& trace : ranks)
    if (trace.rank) taken.insert(*trace.rank);
  std::int64_t next = 0;
  for (RankTrace& trace : ranks) {
    if (trace.rank) continue;
    while (taken.contains(next)) ++next;
    trace.rank = next++;
  }
  set.notes.push_back(fmt::format(
      "{} no rank (distributedInfo), nor do the names: numbered by their order",
      told == 0 ? std::string("the traces tell")
                : counted(static_cast<std::int64_t>(ranks.size() - told), "trace") + " tell"));
}

/// A rank that was profiled several times: of all ranks the profile with the most steps is taken.
void choose_profiles(RankSet& set) {
  std::map<std::int64_t, std::vector<RankTrace>> by_rank;
  std::size_t most = 0;
  for (RankTrace& trace : set.ranks) {
    auto& profiles = by_rank[*trace.rank];
    profiles.push_back(std::move(trace));
    most = std::max(most, profiles.size());
  }
  std::size_t chosen = 0;
  std::int64_t steps = -1;
  for (std::size_t n = 0; n < most; ++n) {
    std::int64_t all = 0;
    for (const auto& [rank, profiles] : by_rank)
      if (n < profiles.size()) all += profiles[n].diagnosis.steps;
    if (all >= steps) chosen = n, steps = all;
  }
  set.ranks.clear();
  for (auto& [rank, profiles] : by_rank)
    set.ranks.push_back(std::move(profiles[std::min(chosen, profiles.size() - 1)]));
  if (most > 1)
    set.notes.push_back(fmt::format(
        "ranks were profiled up to {} times: number {} of them is told, which has the most steps; "
        "name files to be told of others",
        most, chosen + 1));
}

void compare(RankSet& set) {
  std::map<std::int64_t, std::int64_t> sizes, steps;
  for (const RankTrace& trace : set.ranks) {
    if (trace.world_size) ++sizes[*trace.world_size];
    ++steps[trace.diagnosis.steps];
  }
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  if (!sizes.empty()) set.world_size = std::ranges::max_element(sizes, by_count)->first;
  if (sizes.size() > 1) {
    std::string all;
    for (const auto& [size, count] : sizes)
      all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", size, counted(count, "file"));
    set.notes.push_back("the files are not of one job: world sizes " + all);
  }
  if (steps.size() > 1) {
    const std::int64_t usual = std::ranges::max_element(steps, by_count)->first;
    std::string others;
    for (const RankTrace& trace : set.ranks) {
      if (trace.diagnosis.steps == usual) continue;
      if (others.size() > kMostShown) {
        others += ", ...";
        break;
      }
      others += fmt::format(", {} on rank {}", trace.diagnosis.steps, *trace.rank);
    }
    set.notes.push_back(
        fmt::format("the ranks' numbers of steps differ: {} on most{}", usual, others));
  }
  if (!set.world_size) return;
  std::set<std::int64_t> there;
  std::vector<std::int64_t> beyond;
  for (const RankTrace& trace : set.ranks) {
    there.insert(*trace.rank);
    if (*trace.rank >= *set.world_size) beyond.push_back(*trace.rank);
  }
  for (std::int64_t rank = 0; rank < *set.world_size; ++rank)
    if (!there.contains(rank)) set.missing.push_back(rank);
  if (!set.missing.empty())
    set.notes.push_back(fmt::format(
        "of {} ranks {} missing ({}): what waits for them counts as transfer", *set.world_size,
        set.missing.size() == 1 ? "one is" : fmt::format("{} are", set.missing.size()),
        number_list(set.missing)));
  if (!beyond.empty())
    set.notes.push_back(
        fmt::format("a job of {} has no rank {}: files of another job are among them",
                    *set.world_size, number_list(beyond)));
}

}  // namespace

std::string number_list(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (text.size() > kMostShown) return text + ", ...";
    if (!text.empty()) text += ", ";
    text += std::to_string(numbers[i]);
    if (end - i > 1) text += (end - i == 2 ? ", " : "-") + std::to_string(numbers[end - 1]);
    i = end;
  }
  return text;
}

RankSet rank_set(std::vector<RankTrace> traces) {
  RankSet set;
  set.ranks = std::move(traces);
  drop_copies(set);
  if (set.ranks.empty()) return set;
  number(set);
  choose_profiles(set);
  compare(set);
  return set;
}

}  // namespace stoker
