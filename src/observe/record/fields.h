#pragma once

#include <cstdint>

#include "observe/sample/sample.h"

/// The order of a sample's numbers in a recording. New ones are added at the end, so that an older
/// reader takes those that it knows.
namespace stoker::record {

template <class Process, class Visit>
void each_field(Process& p, Visit visit) {
  visit(p.leader.cpu_ns), visit(p.leader.queued_ns);
  visit(p.others.cpu_ns), visit(p.others.queued_ns);
  visit(p.threads), visit(p.busy_threads), visit(p.messages), visit(p.queue_threads);
  visit(p.read_chars), visit(p.read_calls), visit(p.written_chars), visit(p.written_calls);
  visit(p.leader_written_chars), visit(p.read_bytes), visit(p.written_bytes);
  visit(p.resident), visit(p.anonymous), visit(p.swapped);
  visit(p.major_faults), visit(p.minor_faults), visit(p.open_files), visit(p.open_files_most);
  visit(p.told.kind), visit(p.told.steps), visit(p.told.ns), visit(p.told.wait_ns);
  visit(p.told.samples), visit(p.told.validation_steps), visit(p.told.validation_ns);
  visit(p.data_bytes), visit(p.data_cached);
  static_assert(kKeptLooks == 3 && kCodeKinds == 5, "more of them are visited at the end");
  visit(p.look_at_ns[0]), visit(p.look_cpu_ns[0]), visit(p.look_at_ns[1]);
  visit(p.look_cpu_ns[1]), visit(p.look_at_ns[2]), visit(p.look_cpu_ns[2]);
  visit(p.code[0]), visit(p.code[1]), visit(p.code[2]), visit(p.code[3]), visit(p.code[4]);
}

template <class Host, class Visit>
void each_host_field(Host& h, Visit visit) {
  visit(h.busy_ns), visit(h.stolen_ns);
  visit(h.throttled_ns), visit(h.throttled_periods), visit(h.periods);
  visit(h.cpu_pressure_ns), visit(h.memory_pressure_ns), visit(h.io_pressure_ns);
  visit(h.memory_available), visit(h.swap_in_pages);
  visit(h.group_memory), visit(h.group_memory_most);
  visit(h.shared_memory), visit(h.shared_memory_most);
  visit(h.disk_reads), visit(h.disk_read_bytes), visit(h.disk_read_ns), visit(h.disk_busy_ns);
  visit(h.cores_milli), visit(h.quota_milli);
}

template <class Gpu, class Visit>
void each_gpu_field(Gpu& g, Visit visit) {
  visit(g.index), visit(g.busy_percent), visit(g.memory_percent);
  visit(g.memory_used), visit(g.memory_total);
  visit(g.power_mw), visit(g.power_limit_mw), visit(g.clock_mhz), visit(g.clock_most_mhz);
  visit(g.temperature), visit(g.throttle_reasons), visit(g.receive_kb_s), visit(g.send_kb_s);
  visit(g.job_processes), visit(g.foreign_processes), visit(g.foreign_memory);
  visit(g.sm_permille), visit(g.tensor_permille), visit(g.dram_permille);
}

}  // namespace stoker::record
