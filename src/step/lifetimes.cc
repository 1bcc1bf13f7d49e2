#include <string>
#include <vector>

#include "step/step_reader.h"

namespace stoker {
namespace {

enum class Life : std::uint8_t { kUnborn, kAlive, kDead };

bool exists_before_the_step(StorageKind kind) {
  return kind == StorageKind::kParameter || kind == StorageKind::kBuffer ||
         kind == StorageKind::kInput;
}

tl::unexpected<Error> broken(const std::string& where, std::size_t event, std::uint32_t storage,
                             const char* what) {
  return fail(
      ErrorCode::kBadInput,
      "events[" + std::to_string(event) + "]: storage " + std::to_string(storage) + " " + what,
      where);
}

}  // namespace

Status check_lifetimes(const Step& step, const std::string& where) {
  std::vector<Life> life(step.storages.size(), Life::kUnborn);
  for (std::size_t s = 0; s < life.size(); ++s) {
    if (exists_before_the_step(step.storages[s].kind)) life[s] = Life::kAlive;
  }
  std::uint32_t phase = 0;
  for (std::size_t e = 0; e < step.events.size(); ++e) {
    const Event& event = step.events[e];
    switch (event.kind) {
      case EventKind::kPhase:
        if (event.value < phase) {
          return fail(ErrorCode::kBadInput,
                      "events[" + std::to_string(e) + "]: phases are out of order", where);
        }
        phase = event.value;
        break;
      case EventKind::kAllocate:
        if (life[event.value] != Life::kUnborn)
          return broken(where, e, event.value, "is allocated twice");
        life[event.value] = Life::kAlive;
        break;
      case EventKind::kFree:
        if (life[event.value] != Life::kAlive)
          return broken(where, e, event.value, "is freed while not alive");
        if (step.storages[event.value].kind != StorageKind::kTransient) {
          return broken(where, e, event.value, "is freed though it is not transient");
        }
        life[event.value] = Life::kDead;
        break;
      case EventKind::kOperator:
        for (const auto* list :
             {&step.operators[event.value].inputs, &step.operators[event.value].outputs}) {
          for (const TensorRef& tensor : *list) {
            const auto s = static_cast<std::uint32_t>(index(tensor.storage));
            if (life[s] != Life::kAlive) return broken(where, e, s, "is used while not alive");
          }
        }
        break;
      case EventKind::kSynchronize:
        break;
    }
  }
  for (std::size_t s = 0; s < life.size(); ++s) {
    const StorageKind kind = step.storages[s].kind;
    if (kind == StorageKind::kTransient && life[s] == Life::kAlive) {
      return broken(where, step.events.size(), static_cast<std::uint32_t>(s),
                    "is transient but never freed");
    }
  }
  for (const Parameter& p : step.parameters) {
    if (p.gradient >= 0 && life[static_cast<std::size_t>(p.gradient)] != Life::kAlive) {
      return fail(ErrorCode::kBadInput,
                  "the gradient of " + p.name + " is not alive at the end of the step", where);
    }
  }
  return {};
}

}  // namespace stoker
