#include <memory>

#include "cli/arguments/version.h"
#include "cli/outside/output.h"
#include "cli/verbs/verbs.h"
#include "report/model/machine_report.h"

namespace stoker::cli {
namespace {

struct MachineArguments {
  std::optional<double> seconds;
  bool json = false;
};

Result<int> run_machine(const MachineArguments& o) {
  // Twenty ticks of the kernel's clock: enough to tell a busy core from an idle one.
  constexpr double kUsualSeconds = 0.2;
  const MachineReport report{kVersion, this_machine_facts(),
                             machine_load(o.seconds.value_or(kUsualSeconds))};
  print((o.json ? machine_json(report) : machine_text(report)));
  return 0;
}

}  // namespace

Command machine_command() {
  auto o = std::make_shared<MachineArguments>();
  return {"machine",
          "this machine: processor, cores and memory that a job may use, GPUs, present load",
          "",
          {{"seconds", &o->seconds}, {"json", &o->json}},
          [o] { return run_machine(*o); }};
}

}  // namespace stoker::cli
