#include <gtest/gtest.h>

#include "json/text.h"
#include "study/executor/kubernetes_job.h"
#include "study/executor/program_stream.h"

namespace stoker::study {
namespace {

KubernetesTrial trial_of(const Needs& needs) {
  KubernetesTrial trial{"stoker-0f00ba12-7", "0f00ba12", 7, needs};
  trial.folder = "/data/study.db.trials/000007";
  return trial;
}

TEST(Kubernetes, ATrialBecomesAJobThatIsNeverTriedAgain) {
  KubernetesOptions options;
  options.claim = "nfs";
  options.mount = "/data";
  options.tolerate = {"gpu"};
  options.prologue = "module load cuda";
  Needs needs{4, 2, 8LL << 30, 3600, 30};
  needs.image = "pytorch:2.4";
  needs.node_selector = {{"nvidia.com/gpu.product", "A100"}};
  const json::Value job = job_manifest(options, trial_of(needs));
  const json::Value& spec = job["spec"];
  EXPECT_EQ(job["metadata"]["name"].as_string(), "stoker-0f00ba12-7");
  EXPECT_EQ(job["metadata"]["labels"]["stoker-study"].as_string(), "0f00ba12");
  EXPECT_EQ(spec["backoffLimit"].as_integer(), 0);
  EXPECT_EQ(spec["ttlSecondsAfterFinished"].as_integer(), 86400);
  const json::Value& pod = spec["template"]["spec"];
  EXPECT_EQ(pod["restartPolicy"].as_string(), "Never");
  EXPECT_EQ(pod["activeDeadlineSeconds"].as_integer(), 3690);
  EXPECT_EQ(pod["terminationGracePeriodSeconds"].as_integer(), 60);
  EXPECT_EQ(pod["nodeSelector"]["nvidia.com/gpu.product"].as_string(), "A100");
  EXPECT_EQ(pod["tolerations"][0]["key"].as_string(), "gpu");
  EXPECT_EQ(pod["volumes"][1]["persistentVolumeClaim"]["claimName"].as_string(), "nfs");
  const json::Value& container = pod["containers"][0];
  EXPECT_EQ(container["resources"]["limits"]["nvidia.com/gpu"].as_string(), "2");
  EXPECT_EQ(container["resources"]["requests"]["memory"].as_string(), "8589934592");
  EXPECT_EQ(container["command"][2].as_string(), "module load cuda\nexec \"$0\" run-trial \"$1\"");
  EXPECT_EQ(container["command"][4].as_string(), "/data/study.db.trials/000007");
  EXPECT_TRUE(container["env"].empty());
}

TEST(Kubernetes, WithoutAClaimTheCommandTravelsInTheJob) {
  KubernetesTrial trial = trial_of({});
  trial.spec = "{}";
  const json::Value job = job_manifest({}, trial);
  const json::Value& pod = job["spec"]["template"]["spec"];
  EXPECT_EQ(pod["containers"][0]["env"][0]["name"].as_string(), kSpecVariable);
  EXPECT_EQ(pod["volumes"].size(), 1u);
  EXPECT_FALSE(pod.contains("activeDeadlineSeconds"));
}

TEST(Kubernetes, ASecondAttemptHasANameOfItsOwn) {
  EXPECT_EQ(job_name("ab", 12, {"/s/study.db.trials/000012"}), "stoker-ab-12");
  EXPECT_EQ(job_name("ab", 12, {"/s/study.db.trials/000012-3"}), "stoker-ab-12-3");
}

PodView view_of(const char* text) { return pod_view(json::parse(text).value()); }

TEST(Kubernetes, AWaitingPodSaysWhy) {
  const PodView pending = view_of(
      R"({"metadata":{"name":"p","labels":{"job-name":"j"}},"status":{"phase":"Pending",
      "conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable",
      "message":"0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}]}})");
  EXPECT_EQ(pending.job, "j");
  EXPECT_EQ(pending.why_waiting,
            "Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.");
  EXPECT_FALSE(pending.cannot_start);
  const PodView image = view_of(
      R"({"status":{"phase":"Pending","containerStatuses":[{"state":{"waiting":
      {"reason":"ImagePullBackOff","message":"Back-off pulling image"}}}]}})");
  EXPECT_TRUE(image.image_missing);
  const PodView never = view_of(
      R"({"status":{"phase":"Pending","containerStatuses":[{"state":{"waiting":
      {"reason":"InvalidImageName"}}}]}})");
  EXPECT_TRUE(never.cannot_start);
}

TEST(Kubernetes, AnEndIsNamed) {
  const PodView memory = view_of(
      R"({"status":{"phase":"Failed","containerStatuses":[{"state":{"terminated":
      {"reason":"OOMKilled","exitCode":137}}}]}})");
  EXPECT_EQ(memory.state, TrialState::kOutOfMemory);
  EXPECT_EQ(memory.exit_code, 137);
  EXPECT_EQ(view_of(R"({"status":{"phase":"Failed","reason":"Evicted","message":"disk"}})").cause,
            "evicted");
  EXPECT_EQ(view_of(R"({"status":{"phase":"Failed","conditions":[{"type":"DisruptionTarget",
      "status":"True","reason":"PreemptionByScheduler"}]}})")
                .cause,
            "preempted");
  EXPECT_EQ(view_of(R"({"status":{"phase":"Failed","reason":"DeadlineExceeded"}})").state,
            TrialState::kTimedOut);
  const PodView plain = view_of(
      R"({"status":{"phase":"Succeeded","containerStatuses":[{"state":{"terminated":
      {"reason":"Completed","exitCode":0}}}]}})");
  EXPECT_FALSE(plain.state.has_value());
  EXPECT_EQ(plain.phase, PodView::Phase::kEnded);
}

TEST(Kubernetes, TheLastResultOfALogCounts) {
  std::string output;
  EXPECT_FALSE(result_in_log("epoch 1\n", output).has_value());
  EXPECT_EQ(output, "epoch 1\n");
  EXPECT_EQ(result_in_log("a\nstoker-trial-result {1}\nb\nstoker-trial-result {2}\n", output),
            "{2}");
  EXPECT_EQ(output, "a\nstoker-trial-result {1}\nb");
}

TEST(Kubernetes, AStreamOfObjectsIsPartedWhereverItIsCut) {
  const std::string text = "{\"a\": \"}{\\\"\"}\n{\n \"b\": {\"c\": []}\n}\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    ObjectStream stream;
    auto all = stream.add(text.substr(0, cut));
    for (std::string& one : stream.add(text.substr(cut))) all.push_back(std::move(one));
    ASSERT_EQ(all.size(), 2u) << cut;
    EXPECT_EQ(json::parse(all[0]).value()["a"].as_string(), "}{\"");
    EXPECT_TRUE(json::parse(all[1]).value()["b"]["c"].is_array());
  }
}

}  // namespace
}  // namespace stoker::study
