#include <fmt/core.h>

#include <algorithm>

#include "tune/method/greedy_walk.h"
#include "tune/method/problem.h"

/// The greedy search's choice of a batch: by forecast or by measured trials, and once more when the
/// learning rate is known.
namespace stoker::tune {
namespace {

/// ", 0.85 J each (285 W of 300 W, measured)"
std::string energy_words(const BatchFigure& figure) {
  if (!figure.power || figure.samples_per_s.value_or(0) <= 0) return "";
  return fmt::format(", {} each ({})", energy_of(*figure.power, 1 / *figure.samples_per_s).text(),
                     figure.power->text());
}

}  // namespace

bool GreedyWalk::choose_batches() {
  if (options_.batches.size() == 1) {
    batches_ = options_.batches;
    return true;
  }
  return options_.forecast.empty() ? by_measuring() : by_forecast();
}

bool GreedyWalk::by_forecast() {
  const auto choice = choose_batch(options_.forecast, batch_rule());
  std::string cannot;
  for (const BatchFigure& f : options_.forecast) {
    if (!f.fits) cannot += (cannot.empty() ? "" : ", ") + f.value;
  }
  if (!choice)
    return stuck(cannot.empty()
                     ? "the forecast has no power of this GPU: its catalogue entry has no "
                       "TDP; leave out --objective energy"
                     : "by forecast none of the batches fits: " +
                           options_.forecast.front().why_not);
  if (!cannot.empty())
    walk_.decisions.push_back({"left out batch " + cannot, "by forecast out of memory"});
  for (const BatchFigure& f : options_.forecast) {
    if (f.fits && f.power && options_.by == BatchBy::kEnergy)
      walk_.decisions.push_back({fmt::format("batch {}: {:.4g} samples/s{}", f.value,
                                             f.samples_per_s.value_or(0), energy_words(f)),
                                 "by forecast"});
  }
  walk_.decisions.push_back({"batch " + options_.forecast[choice->index].value,
                             "by forecast, without a run; it " + choice->reason});
  for (std::size_t i = choice->index + 1; i-- > 0;) {
    if (options_.forecast[i].fits) batches_.push_back(options_.forecast[i].value);
  }
  return true;
}

bool GreedyWalk::by_measuring() {
  std::vector<BatchFigure> figures;
  const std::string rate = options_.rates.empty() ? "" : options_.rates[options_.rates.size() / 2];
  std::string left_out, why;
  double seconds = 0;
  for (std::size_t i = 0; i < options_.batches.size(); ++i) {
    const std::string& batch = options_.batches[i];
    if (!why.empty()) {
      left_out += (left_out.empty() ? "" : ", ") + batch;
      continue;
    }
    const Outcome* outcome = result(request(batch, rate, "batch", 0));
    if (outcome == nullptr) return false;
    seconds += outcome->wall_s;
    BatchFigure figure{batch, number_of(batch), outcome->samples_per_s, outcome->utilisation,
                       outcome->power};
    if (outcome->end == End::kOutOfMemory) {
      figure.fits = false;
      why = batch + " ran out of memory, and a larger one needs more";
    } else if (!outcome->samples_per_s) {
      return stuck(fmt::format(
          "trial {} at batch {} told no throughput{}: call stoker.report(step=step, "
          "samples=len(batch)) in its loop, or name --model and --gpu for a forecast",
          outcome->trial, batch, outcome->reason.empty() ? "" : " (" + outcome->reason + ")"));
    }
    if (figure.fits && options_.by == BatchBy::kEnergy && !figure.power)
      return stuck(no_power_of(outcome->trial));
    if (figure.fits)
      walk_.decisions.push_back(
          {fmt::format("batch {}: {:.4g} samples/s{}", batch, *figure.samples_per_s,
                       energy_words(figure)),
           fmt::format("measured by trial {} in {:.3g} s", outcome->trial, outcome->wall_s)});
    figures.push_back(figure);
    std::vector<double> rest;
    for (std::size_t r = i + 1; r < options_.batches.size(); ++r)
      rest.push_back(number_of(options_.batches[r]));
    if (why.empty() && options_.by == BatchBy::kThroughput)
      why = rest_is_flat(figures, rest, options_.threshold).value_or("");
  }
  const auto choice = choose_batch(figures, batch_rule());
  if (!choice)
    return stuck(
        fmt::format("every batch ran out of memory, the smallest, {}, too: give smaller "
                    "ones, --batch {:.0f},...",
                    options_.batches.front(), number_of(options_.batches.front()) / 2));
  if (!left_out.empty())
    walk_.decisions.push_back({"batch " + left_out + " not measured", why,
                               seconds / static_cast<double>(figures.size()) *
                                   static_cast<double>(options_.batches.size() - figures.size())});
  walk_.decisions.push_back({"batch " + figures[choice->index].value, "it " + choice->reason});
  for (std::size_t i = choice->index + 1; i-- > 0;) {
    if (figures[i].fits) batches_.push_back(figures[i].value);
  }
  return true;
}

// A batch that fills the card leaves fewer steps for the same data. Whether it trains worse for it
// shows at the rate that was chosen: with smaller batches, one after the other while each is better
// than the one before. One that is better by more than noise is taken, and so on from there; of
// those that noise hides, the second that rises in a row: three in this order are chance once in
// six.
bool GreedyWalk::shrink(std::string& batch, Rate& winner) {
  const auto at = std::ranges::find(batches_, batch);
  double last = *winner.score;
  std::string stays;
  for (auto next = at == batches_.end() ? at : at + 1;
       next != batches_.end() && next - at <= options_.smaller_batches; ++next) {
    Rate smaller{winner.value, winner.rate};
    if (!run_rate(*next, smaller, "smaller")) return false;
    const std::string what = fmt::format("batch {} at lr {}", *next, winner.value);
    if (!smaller.score) {
      stays = what + " came to no result";
      break;
    }
    const std::string results =
        fmt::format("{}: {}, beside {}", what, options_.objective.named_result(*smaller.score),
                    options_.objective.named_result(*winner.score));
    if (*smaller.score <= last) {
      stays += (stays.empty() ? "" : "; ") + results;
      break;
    }
    last = *smaller.score;
    const NoiseVerdict verdict =
        judge_noise({scores_of("batch " + batch, winner), scores_of("batch " + *next, smaller)},
                    options_.objective);
    if (!verdict.text.empty() && stays.empty()) {
      stays = results + ", which cannot be told apart";
      continue;
    }
    walk_.decisions.push_back(
        {fmt::format("batch {} instead of {}", *next, batch),
         results + (stays.empty() ? ": more steps on the same data train better"
                                  : ", the second rise in a row")});
    stays.clear();
    batch = *next;
    winner = std::move(smaller);
    choose(batch, winner);
  }
  if (!stays.empty()) walk_.decisions.push_back({"batch " + batch + " stays", stays});
  return true;
}

}  // namespace stoker::tune
