#include "study/executor/outcome.h"

#include <cerrno>

#include "base/files.h"
#include "system/system_files.h"

namespace stoker::study {
namespace fs = std::filesystem;
namespace {

constexpr Bytes kLargestResult{256LL << 20};

TrialNews lost(std::int64_t trial, const TrialFiles& files, std::string reason) {
  TrialNews news{trial, TrialNews::Kind::kEnded};
  TrialResult& r = news.result;
  r.state = TrialState::kFailed;
  r.cause = "lost";
  r.reason = std::move(reason);
  r.ended = now_seconds();
  r.host = Claim::owner(files).host;
  if (const auto log = read_file(files.folder / "runner.log", Bytes(1 << 20)))
    r.tail = std::string(trimmed(*log));
  std::error_code error;
  const auto claimed = fs::last_write_time(files.claim(), error);
  if (!error) {
    const auto age = fs::file_time_type::clock::now() - claimed;
    r.started = r.ended - std::max(0.0, std::chrono::duration<double>(age).count());
  } else {
    r.started = r.ended;
  }
  r.wall_s = r.ended - r.started;
  return news;
}

/// The result, where there is one that can be read.
std::optional<TrialNews> result_of(std::int64_t trial, const TrialFiles& files) {
  std::error_code error;
  if (!fs::exists(files.result(), error)) return std::nullopt;
  const auto text = read_file(files.result(), kLargestResult);
  if (!text) return std::nullopt;
  auto result = parse_result(*text, files.result().string());
  if (!result) return lost(trial, files, result.error().text());
  return TrialNews{trial, TrialNews::Kind::kEnded, std::move(*result)};
}

}  // namespace

TrialFiles latest_files(const fs::path& store, std::int64_t trial) {
  const TrialFiles first = files_of(store, trial);
  TrialFiles files = first;
  for (int attempt = 2; Claim::look(files) == Claim::Found::kWithdrawn; ++attempt)
    files.folder = first.folder.string() + "-" + std::to_string(attempt);
  return files;
}

std::optional<TrialNews> settle_trial(std::int64_t trial, const TrialFiles& files,
                                      bool handed_over) {
  // The claim first: a runner writes its result before it lets go of the claim.
  const Claim::Found found = Claim::look(files);
  if (auto news = result_of(trial, files)) return news;
  switch (found) {
    case Claim::Found::kHeld:
    case Claim::Found::kUnknown:
      return std::nullopt;
    case Claim::Found::kLeft:
      return lost(trial, files,
                  "lost: its runner ended without a result, and the command with it; it is not run "
                  "again unless asked for");
    case Claim::Found::kWithdrawn:
      return TrialNews{trial, TrialNews::Kind::kWithdrawn, {}, {}, "was withdrawn"};
    case Claim::Found::kNone:
      break;
  }
  const auto withdrawn = Claim::withdraw(files);
  if (!withdrawn) return std::nullopt;
  if (!*withdrawn) return std::nullopt;  // a runner took it in this instant: looked at again
  if (handed_over) return lost(trial, files, "its runner ended before the command began");
  return TrialNews{trial, TrialNews::Kind::kWithdrawn, {}, {}, "its runner never began"};
}

}  // namespace stoker::study
