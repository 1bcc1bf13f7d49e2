#pragma once

#include "device/machine.h"
#include "program/job.h"
#include "step/step_reader.h"
#include "step/test_step.h"

namespace stoker::testing_support {

inline Machine ampere() {
  Machine machine;
  machine.device->name = "test";
  machine.device.gpu()->architecture = Architecture::kAmpere;
  machine.device.gpu()->compute_capability = 80;
  machine.device->peak = {19.5e12, 78e12, 156e12, 312e12, 312e12};
  return machine;
}

inline Step linear_step() { return parse_step(linear_step_json(), "test").value(); }

inline Job plain_job() {
  Job job;
  job.batch = 10;
  return job;
}

}  // namespace stoker::testing_support
