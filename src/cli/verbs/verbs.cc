#include "cli/verbs/verbs.h"

namespace stoker::cli {

std::vector<Section> all_verbs() {
  return {
      {"Before you rent",
       {plan_command(), predict_command(),
        python_command("vocab",
                       "how large a vocabulary and how long a sequence a text needs, and what each "
                       "costs")}},
      {"Measure on a machine",
       {probe_command(), calibrate_command(), validate_command(), fit_command()}},
      {"Run the matrix", {sweep_command(), tune_command(), study_command(), run_trial_command()}},
      {"While it runs, and after",
       {watch_command(), explain_command(),
        python_command("observation",
                       "where the time of a training loop went that stoker.Observer recorded")}},
      {"Your own model",
       {python_command("capture",
                       "one step of a model, without a GPU, into a step file (Python, PyTorch)")}},
      {"Look it up",
       {models_command(), gpus_command(), machine_command(), settings_command(),
        completion_command(), page_command()}}};
}

}  // namespace stoker::cli
