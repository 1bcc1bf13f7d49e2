#include <algorithm>
#include <cmath>

#include "tune/run/tuner.h"

/// What of a search's trials stays on the disk.
namespace stoker::tune {
namespace fs = std::filesystem;

fs::path Tuner::checkpoints(std::size_t job) const {
  const auto row = std::ranges::find_if(job_of_, [&](const auto& e) { return e.second == job; });
  const std::int64_t own = row == job_of_.end() ? 0 : row->first;
  const std::int64_t config = jobs_[job].request.config > 0 ? jobs_[job].request.config : own;
  return checkpoint_folder(store_.path()) / std::to_string(config);
}

/// Before another trial begins: checkpoints that nothing goes on from go, and where the rest takes
/// more than it may, or the disk is nearly full, those of the worst; such a trial begins anew. The
/// best so far keeps its own to the end.
bool Tuner::make_room() const {
  const Walk now = walk();
  const auto best = now.choice ? job_of_.find(now.choice->trial) : job_of_.end();
  const fs::path of_best = best == job_of_.end() ? fs::path() : checkpoints(best->second);
  std::vector<Checkpoint> all;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const bool needed = jobs_[i].request.config > 0 || jobs_[i].request.stage == "final";
    const auto& outcome = jobs_[i].outcome;
    if (!outcome) continue;
    const fs::path folder = checkpoints(i);
    const bool may_go_on = (needed && outcome->end == End::kReached) || folder == of_best;
    std::erase_if(all, [&](const Checkpoint& c) { return c.folder == folder; });
    const double score = folder == of_best ? INFINITY : outcome->best().value_or(-INFINITY);
    all.push_back({folder, score, may_go_on, false});
  }
  for (Checkpoint& one : all) {
    const auto of_this = [&](std::size_t job) { return checkpoints(job) == one.folder; };
    for (const auto& [job, live] : live_) one.in_use = one.in_use || of_this(job);
    for (const study::TrialRow& row : interrupted_)
      one.in_use = one.in_use || of_this(job_of_.at(row.id));
  }
  return free_checkpoints(all, options_.checkpoints);
}

void Tuner::clean(std::int64_t keep) const {
  const auto kept = job_of_.find(keep);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (kept != job_of_.end() && checkpoints(i) == checkpoints(kept->second)) continue;
    std::error_code ignored;
    fs::remove_all(checkpoints(i), ignored);
  }
}

fs::path checkpoint_folder(const fs::path& store) { return store.string() + ".checkpoints"; }

}  // namespace stoker::tune
