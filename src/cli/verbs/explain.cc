#include <filesystem>
#include <fstream>
#include <memory>
#include <new>

#include "base/counted.h"
#include "base/text.h"
#include "cli/answers/against.h"
#include "cli/outside/output.h"
#include "cli/verbs/verbs.h"
#include "device/catalogue/gpu_catalogue.h"
#include "diagnosis/next_run/recorded_timeline.h"
#include "diagnosis/trace/ranks_diagnosis.h"
#include "observe/record/recording.h"
#include "report/model/recording_page.h"
#include "trace/trace_files.h"

namespace stoker::cli {
namespace {

struct ExplainArguments {
  std::vector<std::string> files;
  std::string file;  ///< the one that is read
  std::string at, gpu, html, against;
  std::optional<std::int64_t> device;
  bool json = false, all_findings = false;
};

enum class Recording { kSnapshot, kProfile, kWatch };

bool begins_as_watch(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string first(32, '\0');
  stream.read(first.data(), static_cast<std::streamsize>(first.size()));
  first.resize(static_cast<std::size_t>(stream.gcount()));
  return is_recording(first);
}

/// By a mark that only we write, else by the name, else by the first byte: a pickle begins with
/// 0x80, JSON with a bracket.
Result<Recording> kind_of(const std::string& file) {
  if (begins_as_watch(file)) return Recording::kWatch;
  const std::string name = file.ends_with(".gz") ? file.substr(0, file.size() - 3) : file;
  if (name.ends_with(".pickle") || name.ends_with(".pkl")) return Recording::kSnapshot;
  if (name.ends_with(".json")) return Recording::kProfile;
  std::ifstream stream(file, std::ios::binary);
  const int first = stream ? stream.get() : -1;
  if (first == '{' || first == '[') return Recording::kProfile;
  constexpr int kPickle = 0x80, kGzip = 0x1F, kZip = 'P';
  if (stream && first != kPickle && first != kGzip && first != kZip)
    return fail(
        ErrorCode::kBadInput,
        "is none of what explain reads: a memory snapshot (.pickle), a torch.profiler trace "
        "(.json), a recording of `stoker watch`",
        file);
  // Whatever else it is, the reader of snapshots names it.
  if (name == file) return Recording::kSnapshot;
  return fail(ErrorCode::kBadInput,
              "its name tells neither a snapshot (.pickle.gz) nor a profile (.json.gz); rename it",
              file);
}

Result<std::optional<MemoryMoment>> moment_of(const std::string& at) {
  if (at.empty()) return std::nullopt;
  for (const MemoryMoment moment :
       {MemoryMoment::kPeak, MemoryMoment::kOutOfMemory, MemoryMoment::kEnd}) {
    if (name_of(moment) == at) return moment;
  }
  return fail(ErrorCode::kUsage, "is peak, oom or end, not \"" + at + "\"", "--at");
}

Result<int> explain_snapshot_file(const ExplainArguments& o) {
  ExplainOptions options;
  const auto moment = TRY(moment_of(o.at));
  options.moment = moment;
  if (o.device) options.device = static_cast<std::size_t>(*o.device);
  if (!o.gpu.empty()) {
    const auto gpu = TRY(find_gpu(o.gpu));
    options.device_memory = gpu.usable_memory;
  }
  const auto snapshot = TRY(read_snapshot(o.file));
  const auto explanation = TRY(explain_snapshot(snapshot, options, o.file));
  const std::string text = o.json ? snapshot_json(explanation, snapshot, o.file, STOKER_VERSION)
                                  : snapshot_text(explanation, snapshot, o.file);
  if (!o.html.empty())
    TRY(write_page(o.html, snapshot_page(explanation, snapshot, picture_of(explanation, snapshot),
                                         o.file, STOKER_VERSION)));
  print(text);
  return 0;
}

/// Reads a trace once for all that is asked of it.
class ProfileSink final : public TraceSink {
 public:
  void restart() override {
    timeline.restart();
    memory.restart();
  }
  void take(const ProfilerEvent& event) override {
    timeline.take(event);
    memory.take(event);
  }

  TraceTimeline timeline;
  KinetoMemorySink memory;
};

/// What of the file could not be read as it stands.
void add_notes(const TraceReading& reading, TraceDiagnosis& d) {
  if (reading.cut)
    d.notes.emplace_back(
        "the file ends early (a full disk, a broken copy): told as far as it goes");
  if (reading.damaged_places > 0)
    d.notes.push_back(counted(reading.damaged_places, "place") +
                      " of the file that are no JSON were passed over");
}

Result<int> explain_profile(const ExplainArguments& o) {
  if (!o.at.empty())
    return fail(ErrorCode::kUsage, "belongs to snapshots; a profile is told at its peak", "--at");
  if (!o.gpu.empty()) {
    return fail(ErrorCode::kUsage,
                "belongs to snapshots; a profile is not replayed for a GPU; leave it out", "--gpu");
  }
  ProfileSink sink;
  ProfileReport report;
  report.file = o.file;
  report.tool_version = STOKER_VERSION;
  report.reading = TRY(read_trace_file(o.file, sink));
  sink.timeline.finish();
  if (!sink.timeline.empty()) {
    report.time = TRY(diagnose_trace(sink.timeline, o.device, o.file));
    add_notes(report.reading, *report.time);
  }
  // A trace with operators or kernels may have been recorded without memory; one with neither
  // fails.
  if (sink.timeline.empty() || !sink.memory.empty()) {
    ProfileMemory memory;
    memory.memory = TRY(sink.memory.memory(report.reading, o.file, o.device));
    memory.summary = summarize(memory.memory);
    memory.comparison = compare_with_kineto(memory.memory);
    report.memory = std::move(memory);
  }
  if (!o.html.empty()) TRY(write_page(o.html, profile_page(report)));
  print(o.json ? profile_json(report) : profile_text(report));
  return 0;
}

/// Reads the ranks' traces one after the other and keeps of each what the answer needs.
class RanksReader {
 public:
  explicit RanksReader(std::optional<std::int64_t> device) : device_(device) {}

  void take(const std::string& name, Result<Unpacked> content) {
    ++files;
    if (!content) return pass_over(content.error());
    TraceTimeline timeline;
    Result<TraceReading> reading = read_trace_events(content->content, name, timeline);
    if (!reading) return pass_over(reading.error());
    timeline.finish();
    const std::uint64_t hash = fnv1a(content->content);
    reading->cut = reading->cut || content->cut;
    content->content = std::string();
    auto trace = diagnose_in_full(timeline, device_, name);
    if (!trace) return pass_over(trace.error());
    add_notes(*reading, trace->diagnosis);
    RankTrace rank = rank_trace(timeline, std::move(*trace));
    rank.file = name;
    rank.rank = reading->origin.rank;
    rank.world_size = reading->origin.world_size;
    rank.content = hash;
    traces.push_back(std::move(rank));
  }

  std::vector<RankTrace> traces;
  std::vector<std::string> notes;
  std::optional<Error> error;  ///< the first
  std::size_t files = 0;

 private:
  void pass_over(const Error& why) {
    notes.push_back("passed over: " + why.text());
    if (!error) error = why;
  }

  std::optional<std::int64_t> device_;
};

Result<int> explain_ranks(const ExplainArguments& o) {
  if (!o.at.empty() || !o.gpu.empty())
    return fail(ErrorCode::kUsage, "belongs to memory snapshots; leave it out",
                o.at.empty() ? "--gpu" : "--at");
  RanksReader reader(o.device);
  TRY(each_trace(o.files, [&](const std::string& name, Result<Unpacked> content) {
    reader.take(name, std::move(content));
  }));
  if (reader.traces.empty())
    return fail(reader.error->code,
                reader.error->message + (reader.files > 1
                                             ? "; nor is any other of " +
                                                   std::to_string(reader.files) + " files a trace"
                                             : ""),
                reader.error->where);
  RanksReport report;
  report.tool_version = STOKER_VERSION;
  report.source = o.files.front();
  if (o.files.size() > 1) report.source += " and " + std::to_string(o.files.size() - 1) + " more";
  report.diagnosis = diagnose_ranks(std::move(reader.traces), std::move(reader.notes));
  if (!o.html.empty()) TRY(write_page(o.html, ranks_page(report)));
  print(o.json ? ranks_json(report) : ranks_text(report));
  return 0;
}

Result<int> explain_watch(const ExplainArguments& o) {
  if (!o.at.empty() || !o.gpu.empty() || o.device)
    return fail(ErrorCode::kUsage, "belongs to memory snapshots; leave it out",
                !o.at.empty() ? "--at"
                : o.device    ? "--device"
                              : "--gpu");
  const RecordedTimeline recorded = TRY(read_timeline(o.file));
  const RecordingSummary& summary = recorded.summary;
  WatchReport report;
  report.tool_version = STOKER_VERSION;
  report.source = o.file;
  report.timeline = &recorded.timeline;
  report.diagnosis = diagnose_job(recorded.timeline);
  if (!o.against.empty()) report.against = TRY(set_against(o.against, recorded.timeline));
  report.hidden = summary.facts.hidden;
  if (summary.end.empty())
    report.diagnosis.notes.emplace_back(
        "the recording has no end: the watch was killed, or goes on");
  if (summary.damaged_bytes > 0)
    report.diagnosis.notes.push_back(std::to_string(summary.damaged_bytes) +
                                     " bytes of the recording are damaged and were passed over");
  if (o.all_findings) report.most_findings = report.diagnosis.findings.size();
  if (!o.html.empty()) TRY(write_page(o.html, watch_page(report)));
  print((o.json ? watch_json(report) : watch_text(report)));
  return 0;
}

/// Several files, a folder, an archive: the ranks of one job.
bool are_ranks(const std::vector<std::string>& files) {
  std::error_code error;
  return files.size() > 1 || std::filesystem::is_directory(files.front(), error) ||
         named_as_archive(files.front());
}

Result<int> run_explain(const ExplainArguments& given) {
  ExplainArguments o = given;
  o.file = o.files.front();
  try {
    if (are_ranks(o.files)) {
      if (!o.against.empty() || o.all_findings)
        return fail(ErrorCode::kUsage, "belongs to recordings of a watch; leave it out",
                    o.against.empty() ? "--all-findings" : "--against");
      return explain_ranks(o);
    }
    const auto kind = TRY(kind_of(o.file));
    if (kind == Recording::kWatch) return explain_watch(o);
    if (!o.against.empty() || o.all_findings)
      return fail(ErrorCode::kUsage, "belongs to recordings of a watch; leave it out",
                  o.against.empty() ? "--all-findings" : "--against");
    return kind == Recording::kSnapshot ? explain_snapshot_file(o) : explain_profile(o);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kIo, "does not fit into this machine's memory; use a larger one",
                o.file);
  }
}

}  // namespace

Command explain_command() {
  auto o = std::make_shared<ExplainArguments>();
  return {"explain",
          "what a recording holds: who waited in a watched run or a profile, what held the GPU's "
          "memory",
          "Examples: stoker explain snapshot.pickle --at peak\n"
          "          stoker explain traces/    the ranks of a job: which one is late, and why\n"
          "Record one: torch.cuda.memory._record_memory_history() at the start, then\n"
          "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\"). Nothing in the file is executed.",
          {{"file", &o->files},
           {"at", &o->at},
           {"device", &o->device},
           {"gpu", &o->gpu},
           {"against", &o->against},
           {"all-findings", &o->all_findings},
           {"html", &o->html},
           {"json", &o->json}},
          [o] { return run_explain(*o); }};
}

}  // namespace stoker::cli
