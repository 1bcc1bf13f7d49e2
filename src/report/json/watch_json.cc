#include "report/json/json_parts.h"
#include "report/model/watch_report.h"

namespace stoker {
namespace {

constexpr const char* kWatchSchema = "stoker-watch-1";

Json states_of(const JobSeconds& job) {
  Json shares = Json::object();
  for (std::size_t i = 0; i < kJobStates; ++i) {
    const double share = job.all() > 0 ? job.in[i] / job.all() : 0;
    shares.append(std::string(name_of(static_cast<JobState>(i))), share);
  }
  return shares;
}

Json workers_of(const WorkerSeconds& w) {
  const double alive = w.alive > 0 ? w.alive : 1;
  return {{"running", w.cpu / alive},     {"waits_for_core", w.queued / alive},
          {"storage", w.storage / alive}, {"sleeps", w.sleeps / alive},
          {"locked", w.locked / alive},   {"idle", w.idle / alive}};
}

Json against_of(const std::optional<AgainstForecast>& a) {
  if (!a) return {};
  return {{"what", a->what},
          {"machine", a->machine},
          {"batch", a->batch},
          {"step_ms", figure_object(a->step_ms)},
          {"samples_per_s", figure_object(a->samples_per_s)},
          {"seen_step_ms", a->seen_step_ms},
          {"seen_samples_per_s", a->seen_samples_per_s}};
}

Json told_of(const std::optional<ToldLoop>& told) {
  if (!told) return {};
  constexpr double kMillis = 1e3;
  return {{"steps", told->steps},
          {"step_ms", told->step_s * kMillis},
          {"waits", told->waits ? Json(*told->waits) : Json()},
          {"validation", told->validation ? Json(*told->validation) : Json()},
          {"samples_per_s", told->samples_per_s > 0 ? Json(told->samples_per_s) : Json()}};
}

Json own_loading_of(const std::optional<OwnLoading>& own) {
  if (!own) return {};
  return {{"value", own->value ? Json(*own->value) : Json()},
          {"low", own->low},
          {"high", own->high},
          {"by_code", own->by_code}};
}

Json rhythm_of(const std::optional<Rhythm>& r) {
  if (!r) return {};
  return {{"period_s", r->period},
          {"low_s", r->low},
          {"high_s", r->high},
          {"share", r->share},
          {"judged_s", r->judged}};
}

Json rank_of(const RankTimeline& r) {
  return {{"pid", r.pid},
          {"rank", r.rank >= 0 ? Json(r.rank) : Json()},
          {"states", states_of(r.job)},
          {"workers", r.workers_most},
          {"worker_states", r.workers_most > 0 ? workers_of(r.workers) : Json()},
          {"worker_starts", static_cast<std::int64_t>(r.generations.size())},
          {"pin_thread", r.pin_thread},
          {"batches", r.batches},
          {"rhythm", rhythm_of(r.rhythm)}};
}

}  // namespace

std::string watch_line_json(const WatchLine& line, const std::string& tool_version) {
  const Stretch& s = line.stretch;
  const double seconds = s.seconds > 0 ? s.seconds : 1;
  const Json value{{"schema", kWatchSchema},
                   {"stoker", tool_version},
                   {"kind", "interval"},
                   {"from_s", s.from},
                   {"seconds", s.seconds},
                   {"states", states_of(s.job)},
                   {"workers", line.workers},
                   {"worker_states", line.workers > 0 ? workers_of(s.workers) : Json()},
                   {"batches", s.batches},
                   {"ready_batches", s.ready >= 0 ? Json(s.ready) : Json()},
                   {"gpu_busy", s.gpu_busy >= 0 ? Json(s.gpu_busy) : Json()},
                   {"cores_used", s.cores_used / seconds},
                   {"cores_foreign", s.cores_foreign / seconds},
                   {"memory_bytes", static_cast<std::int64_t>(s.memory)},
                   {"processes", line.processes}};
  return value.dump() + "\n";
}

std::string watch_json(const WatchReport& r) {
  const JobDiagnosis& d = r.diagnosis;
  Json findings = Json::array();
  for (const JobFinding& f : d.findings) findings.push_back(finding_object(f));
  Json ranks = Json::array();
  for (const RankTimeline& rank : r.timeline->ranks()) ranks.push_back(rank_of(rank));
  const Json value{{"schema", kWatchSchema},
                   {"stoker", r.tool_version},
                   {"kind", "report"},
                   {"source", r.source},
                   {"seconds", d.seconds},
                   {"verdict", d.verdict},
                   {"healthy", d.healthy},
                   {"waits_for_data", d.waits},
                   {"waits_seen", d.waits_seen},
                   {"told", told_of(d.told)},
                   {"own_loading", own_loading_of(d.own_loading)},
                   {"useful", d.useful},
                   {"batches_per_s", d.batches_per_s > 0 ? Json(d.batches_per_s) : Json()},
                   {"states", states_of(d.job)},
                   {"findings", findings},
                   {"ranks", ranks},
                   {"against", against_of(r.against)},
                   {"cores", r.timeline->facts().cores},
                   {"notes", d.notes},
                   {"hidden", r.hidden},
                   {"recording", r.recording.empty() ? Json() : Json(r.recording)}};
  return value.dump() + "\n";
}

}  // namespace stoker
