#include <gtest/gtest.h>

#include "report/model/recording_report.h"

namespace stoker {
namespace {

ProfileReport report() {
  ProfileReport r;
  r.file = "trace.json";
  TraceDiagnosis& d = r.time.emplace();
  d.device = 3;
  d.seconds = 0.5;
  d.steps = 4;
  d.step_s = 0.125;
  d.compute = 0.6;
  d.idle = 0.4;
  d.idle_by[static_cast<std::size_t>(IdleCause::kLoader)] = 0.398;
  d.idle_by[static_cast<std::size_t>(IdleCause::kLatency)] = 0.002;
  d.verdict = "The verdict.";
  d.largest = {{"a\x1b[2Jkernel", 0.043, 1234}};
  JobFinding& finding = d.findings.emplace_back();
  finding.name = "waits_for_data";
  finding.lost = 0.398;
  d.notes = {"something is missing"};
  return r;
}

TEST(TraceText, ToldWithSharesKernelsFindingsAndNotes) {
  EXPECT_EQ(profile_text(report()),
            "trace.json, 500 ms of GPU 3: 4 steps of 125 ms (median)\n\n"
            "The verdict.\n\n"
            "  the GPU: computes 60 %, idles 40 %; idle while the loop waits for data 40 %\n"
            "  kernels and copies by their time:\n"
            "   4.3 %    1,234  a?[2Jkernel\n\n"
            " 1. Waiting for data (40 % of the time, confidence medium)\n"
            "    \n"
            "    Cure: \n\n"
            "Note: something is missing\n");
}

TEST(TraceText, ALongNameIsCutBetweenLetters) {
  ProfileReport r = report();
  std::string name(71, 'k');
  r.time->largest[0].name = name + "\xc3\xa4rest";
  EXPECT_NE(profile_text(r).find("  " + name + "...\n"), std::string::npos);
}

}  // namespace
}  // namespace stoker
