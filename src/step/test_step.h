#pragma once

#include <string>

namespace stoker::testing_support {

/// A linear layer [batch, 4] x [4, 3] with cross-entropy replaced by a sum: small enough to check
/// by hand. Storages: 0 weight, 1 input, 2 output, 3 loss, 4 gradient of the output, 5 gradient of
/// the weight.
inline std::string linear_step_json() {
  return R"({
  "format": "stoker-step", "schema_version": [1, 0], "name": "linear", "mode": "train",
    "precision": "fp32",
  "provenance": {"spec": "test", "capture": "fake-cuda", "torch": "2.13.0"},
  "dimensions": [{"name": "batch", "default": 8, "min": 1}],
  "diagnostics": {},
  "strings": {"operators": ["aten::mm", "aten::sum", "aten::expand_copy"], "modules": ["", "fc"]},
  "types": [["f32", [4, 3]], ["f32", [{"batch": 1}, 4]], ["f32", [{"batch": 1}, 3]], ["f32", []],
            ["f32", [4, {"batch": 1}], [1, 0]]],
  "storages": [[48, "parameter"], [{"batch": 16}, "input"], [{"batch": 12}, "transient"],
    [4, "output"],
               [{"batch": 12}, "transient"], [48, "gradient"]],
  "parameters": [{"name": "fc.weight", "type": 0, "storage": 0, "requires_grad": true,
    "gradient": 5}],
  "buffers": [], "inputs": [{"name": "x", "type": 1, "storage": 1}],
  "events": [
    ["p", "forward"], ["a", 2], ["o", 0, 1, 7, [1, 1, 0, 0], [2, 2]],
    ["p", "loss"], ["a", 3], ["o", 1, 0, 8, [2, 2], [3, 3]],
    ["p", "backward"], ["a", 4], ["o", 2, 0, 8, [3, 3], [2, 4], {"v": 2}], ["f", 2],
    ["a", 5], ["o", 0, 1, 7, [4, 1, 2, 4], [0, 5]], ["f", 4], ["p", "end"]
  ]})";
}

}  // namespace stoker::testing_support
