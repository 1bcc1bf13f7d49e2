
#include "json/value.h"
#include "report/json/json_parts.h"

namespace stoker {
namespace {

/// Columns of equal length, one entry a point; as short as a plot can take it.
Json timeline_object(const Timeline& timeline) {
  Json allocated = Json::array();
  Json reserved = Json::array();
  Json roles = Json::object();
  Json marks = Json::array();
  for (const TimelinePoint& point : timeline.points) {
    allocated.push_back(point.allocated.count());
    reserved.push_back(point.reserved.count());
  }
  for (std::size_t r = 0; r < kBufferRoles; ++r) {
    Json column = Json::array();
    bool any = false;
    for (const TimelinePoint& point : timeline.points) {
      column.push_back(point.by_role[r].count());
      any = any || point.by_role[r].count() != 0;
    }
    if (any) roles[std::string(name_of(static_cast<BufferRole>(r)))] = std::move(column);
  }
  for (const TimelineMark& mark : timeline.marks)
    marks.push_back({{"name", mark.name}, {"first", mark.first}});
  return {{"allocated_bytes", std::move(allocated)},
          {"reserved_bytes", std::move(reserved)},
          {"by_role_bytes", std::move(roles)},
          {"marks", std::move(marks)}};
}

Json remedy_object(const Remedy& r) {
  Json json{{"what", r.what},
            {"flags", r.settings},
            {"device_peak_bytes", r.device_peak.count()},
            {"saving_bytes", r.saving.count()},
            {"verdict", name_of(r.verdict)},
            {"fits", r.fits},
            {"only_by_flushing", r.only_by_flushing},
            {"estimate", r.estimate}};
  if (r.time_change) json["time_change"] = *r.time_change;
  return json;
}

std::string module_name(const Step& step, ModuleId id) {
  return index(id) < step.module_names.size() ? step.module_names[index(id)] : "(other)";
}

}  // namespace

Json figure_object(const Figure& f) {
  return {{"value", f.value}, {"low", f.low}, {"high", f.high}, {"basis", f.basis}};
}

Json memory_object(const Forecast& f, const std::optional<BatchLimits>& limits) {
  const MemoryForecast& m = f.memory;
  Json json{{"verdict", name_of(m.verdict)},
            {"fits", m.fits},
            {"only_by_flushing", m.only_by_flushing},
            {"usable_bytes", m.usable.count()},
            {"device_peak_bytes", figure_object(m.device_peak)},
            {"reserved_peak_bytes", figure_object(m.reserved_peak)},
            {"allocated_peak_bytes", figure_object(m.allocated_peak)},
            {"fragmentation_bytes", m.outcome.fragmentation.count()}};
  json["peak_at"] = m.peak_words;
  if (!m.out_of_memory.empty()) json["out_of_memory"] = m.out_of_memory;
  if (!m.failure_words.empty()) json["out_of_memory_at"] = m.failure_words;
  Json parts = Json::object();
  for (std::size_t r = 0; r < kBufferRoles; ++r) {
    parts[std::string(name_of(static_cast<BufferRole>(r)))] = m.outcome.live.by_role[r].count();
  }
  json["at_peak_bytes"] = std::move(parts);
  Json outside = Json::array();
  for (const OutsideMemory& o : m.outside)
    outside.push_back({{"name", o.name}, {"bytes", o.bytes.count()}, {"basis", o.basis}});
  json["outside_allocator"] = std::move(outside);
  if (limits) {
    const auto b = [](std::int64_t n) { return static_cast<double>(n); };
    json["max_batch"] =
        figure_object({b(limits->value), b(limits->low), b(limits->high), limits->basis});
    if (limits->first_failing > 0) json["first_failing_batch"] = limits->first_failing;
    if (limits->low_in_training > 0) json["safe_batch_in_training"] = limits->low_in_training;
    if (limits->missing.count() > 0) json["missing_bytes"] = limits->missing.count();
  }
  return json;
}

Json remedies_object(const Remedies& remedies) {
  Json list = Json::array();
  for (const Remedy& r : remedies.list) list.push_back(remedy_object(r));
  Json json{{"list", std::move(list)}, {"too_small", remedies.too_small}};
  if (remedies.together) json["together"] = remedy_object(*remedies.together);
  if (remedies.fsdp_gpus > 0) json["fsdp_gpus"] = remedies.fsdp_gpus;
  return json;
}

Json two_point_object(const TwoPointAnswer& a) {
  Json readings = Json::array();
  for (std::size_t i = 0; i < a.readings.size(); ++i) {
    readings.push_back({{"batch", a.readings[i].batch},
                        {"bytes", a.readings[i].bytes.count()},
                        {"simulated", a.simulated[i]}});
  }
  Json json{{"readings", std::move(readings)},
            {"gpu", a.gpu_name},
            {"gpu_memory_bytes", a.gpu_memory.count()},
            {"per_sample_bytes", a.estimate.per_sample_bytes},
            {"fixed_bytes", a.estimate.fixed_bytes},
            {"batch", a.estimate.batch},
            {"batch_with_1_gib_kept_back", a.estimate.batch_at_least_kept},
            {"global_batch", a.estimate.global_batch()}};
  if (a.simulated_largest > 0) {
    json["simulated_largest_batch"] = a.simulated_largest;
    json["simulated_safe_batch"] = a.simulated_safe;
    json["why_they_differ"] = a.reasons;
  }
  return json;
}

Json explanation_object(const Prediction& prediction, const Step& step) {
  const Forecast& f = prediction.forecast;
  Json classes = Json::object();
  for (std::size_t c = 0; c < kKernelClasses; ++c) {
    const double ms = milliseconds(f.time.class_device[c]);
    if (ms > 0) classes[std::string(name_of(static_cast<KernelClass>(c)))] = ms;
  }
  Json modules = Json::object();
  for (const auto& [module, time_spent] : f.module_time)
    modules[module_name(step, module)]["ms"] = milliseconds(time_spent);
  const LiveBytes& live = f.memory.outcome.live;
  for (const ModuleBytes& m : live.by_module)
    modules[module_name(step, m.module)]["bytes_at_peak"] = m.bytes.count();
  for (const ModuleBytes& m : live.activations)
    modules[module_name(step, m.module)]["activation_bytes_at_peak"] = m.bytes.count();
  Json json{{"class_ms", std::move(classes)},
            {"modules", std::move(modules)},
            {"cudnn_workspace_bytes_at_peak", live.optional_workspaces.count()},
            {"timeline", timeline_object(f.memory.outcome.timeline)}};
  if (prediction.advice) {
    if (prediction.advice->runs_from)
      json["runs_from_bytes"] = prediction.advice->runs_from->count();
    json["remedies"] = remedies_object(prediction.advice->remedies);
  }
  return json;
}

}  // namespace stoker
