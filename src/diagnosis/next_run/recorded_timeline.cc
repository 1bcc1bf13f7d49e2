#include "diagnosis/next_run/recorded_timeline.h"

namespace stoker {

Result<RecordedTimeline> read_timeline(const std::string& file) {
  RecordedTimeline out;
  RecordingEvents events;
  events.facts = [&](const WatchFacts& facts) { out.timeline.set_facts(facts); };
  events.processes = [&](const std::vector<ProcessFacts>& p) { out.timeline.learn(p); };
  events.sample = [&](const Sample& sample) { out.timeline.add(sample); };
  out.summary = TRY(read_recording(file, events));
  return out;
}

}  // namespace stoker
