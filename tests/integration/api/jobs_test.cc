// Unary calls of JobService through a real socket.
#include <grpcpp/generic/generic_stub.h>

#include <limits>
#include <thread>

#include "tests/integration/api/api_fixture.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ApiJobsTest : public ApiFixture {
 protected:
  void SetUp() override {
    ApiFixture::SetUp();
    StartServer();
  }

  absl::StatusOr<v1::ListJobsResponse> List(const v1::ListJobsRequest& request) {
    v1::ListJobsResponse response;
    const auto context = NewContext();
    const absl::Status status = FromGrpcStatus(jobs_->ListJobs(context.get(), request, &response));
    if (!status.ok()) return status;
    return response;
  }
  absl::StatusOr<v1::Job> Cancel(const std::string& name, const std::string& etag = "") {
    v1::CancelJobRequest request;
    request.set_name(name);
    request.set_etag(etag);
    v1::Job job;
    const auto context = NewContext();
    const absl::Status status = FromGrpcStatus(jobs_->CancelJob(context.get(), request, &job));
    if (!status.ok()) return status;
    return job;
  }
  absl::Status Delete(const std::string& name, const std::string& etag = "") {
    v1::DeleteJobRequest request;
    request.set_name(name);
    request.set_etag(etag);
    google::protobuf::Empty response;
    const auto context = NewContext();
    return FromGrpcStatus(jobs_->DeleteJob(context.get(), request, &response));
  }
};

TEST_F(ApiJobsTest, CreateReturnsTheStoredJobWithDefaultsOwnerAndEtag) {
  const v1::Job job = MustCreate("first");
  EXPECT_EQ(job.name(), "jobs/first");
  EXPECT_EQ(job.state(), v1::Job::QUEUED);
  EXPECT_EQ(job.owner(), absl::StrCat("user:", getuid()));
  EXPECT_EQ(job.spec().lora().r(), 8);
  EXPECT_EQ(job.resources().device_type(), "cpu");
  EXPECT_EQ(job.etag(), absl::StrCat("\"r", job.revision(), "\""));
  EXPECT_EQ(Get("jobs/first")->SerializeAsString(), job.SerializeAsString());
  EXPECT_EQ(observer_.finished("CreateJob", absl::StatusCode::kOk), 1);
}

TEST_F(ApiJobsTest, OutputFieldsOfTheRequestAreIgnored) {
  v1::CreateJobRequest request;
  *request.mutable_job() = GoodJob();
  request.mutable_job()->set_state(v1::Job::SUCCEEDED);
  request.mutable_job()->set_owner("user:0");
  request.mutable_job()->set_name("jobs/other");
  request.mutable_job()->set_adapter_path("/etc");
  request.mutable_job()->mutable_progress()->set_step(9);
  const v1::Job job = Create(request).value();
  EXPECT_EQ(job.state(), v1::Job::QUEUED);
  EXPECT_EQ(job.owner(), absl::StrCat("user:", getuid()));
  EXPECT_NE(job.name(), "jobs/other");
  EXPECT_EQ(job.adapter_path(), "");
  EXPECT_FALSE(job.has_progress());
}

TEST_F(ApiJobsTest, ValidateOnlyCreatesNothingAndShowsEveryDefault) {
  v1::CreateJobRequest request;
  *request.mutable_job() = GoodJob();
  request.set_job_id("dry");
  request.set_validate_only(true);
  const v1::Job job = Create(request).value();
  EXPECT_EQ(job.name(), "jobs/dry");
  EXPECT_EQ(job.spec().training().learning_rate(), 2e-4);
  EXPECT_THAT(List({})->jobs(), IsEmpty());
}

TEST_F(ApiJobsTest, ValidateOnlyFailsWhereTheRealCallWould) {
  MustCreate("taken");
  v1::CreateJobRequest request;
  *request.mutable_job() = GoodJob();
  request.set_job_id("taken");
  for (const bool dry : {false, true}) {
    request.set_validate_only(dry);
    const absl::Status status = Create(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << dry;
    EXPECT_EQ(ReasonOf(status), Reason::kJobExists) << dry;
  }
  request.mutable_job()->mutable_resources()->set_devices(3);
  EXPECT_EQ(ReasonOf(Create(request).status()), Reason::kDeviceCountImpossible);
}

TEST_F(ApiJobsTest, AllWrongFieldsArriveWithTheirPaths) {
  v1::CreateJobRequest request;
  *request.mutable_job() = GoodJob();
  request.set_job_id("Wrong");
  request.set_request_id("not-a-uuid");
  request.mutable_job()->mutable_spec()->mutable_lora()->set_r(0);
  request.mutable_job()->mutable_spec()->mutable_training()->set_learning_rate(
      std::numeric_limits<double>::quiet_NaN());
  const absl::Status status = Create(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), Reason::kInvalidField);
  std::vector<std::string> fields;
  for (const auto& violation : FieldViolationsOf(status)) fields.push_back(violation.field);
  EXPECT_THAT(fields, ElementsAre("job_id", "request_id", "job.spec.lora.r",
                                  "job.spec.training.learning_rate"));
  EXPECT_THAT(List({})->jobs(), IsEmpty());
}

TEST_F(ApiJobsTest, MissingFilesAreTheirOwnErrors) {
  v1::CreateJobRequest request;
  *request.mutable_job() = GoodJob();
  request.mutable_job()->mutable_spec()->mutable_base_model()->set_path(folder_.File("none"));
  absl::Status status = Create(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(status), Reason::kModelNotFound);
  EXPECT_EQ(MetadataOf(status, "path"), folder_.File("none"));

  *request.mutable_job() = GoodJob();
  request.mutable_job()->mutable_spec()->mutable_dataset()->mutable_train(0)->set_path(
      "/etc/passwd");
  status = Create(request).status();
  EXPECT_EQ(ReasonOf(status), Reason::kInvalidField);
  EXPECT_THAT(std::string(status.message()), HasSubstr("allowed_roots"));
}

TEST_F(ApiJobsTest, ImpossibleDevicesAreRefused) {
  v1::CreateJobRequest request;
  *request.mutable_job() = GoodJob();
  request.mutable_job()->mutable_resources()->set_device_type("cuda");
  const absl::Status status = Create(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), Reason::kDeviceCountImpossible);
  EXPECT_EQ(MetadataOf(status, "available"), "0");
}

TEST_F(ApiJobsTest, FiftyParallelCallsWithOneRequestIdMakeOneJob) {
  v1::CreateJobRequest request;
  *request.mutable_job() = GoodJob();
  request.set_request_id("f47ac10b-58cc-4372-a567-0e02b2c3d479");
  std::vector<std::string> names(50);
  std::vector<std::thread> callers;
  for (std::string& name : names) {
    callers.emplace_back([&] {
      const auto job = Create(request);
      name = job.ok() ? job->name() : job.status().ToString();
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(names, testing::Each(names.front()));
  EXPECT_EQ(List({})->jobs_size(), 1);

  request.mutable_job()->set_priority(7);
  const absl::Status reused = Create(request).status();
  EXPECT_EQ(reused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReasonOf(reused), Reason::kRequestIdReused);
}

TEST_F(ApiJobsTest, WithoutARequestIdTwoCallsAreTwoJobs) {
  v1::CreateJobRequest request;
  *request.mutable_job() = GoodJob();
  EXPECT_NE(Create(request)->name(), Create(request)->name());
}

TEST_F(ApiJobsTest, UnknownAndMalformedNamesDiffer) {
  for (const absl::Status& status :
       {Get("jobs/none").status(), Cancel("jobs/none").status(), Delete("jobs/none")}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(ReasonOf(status), Reason::kJobNotFound);
  }
  for (const std::string name : {"", "none", "jobs/", "jobs/A", "jobs/a/b", "jobs/../x"}) {
    for (const absl::Status& status : {Get(name).status(), Cancel(name).status(), Delete(name)}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
      EXPECT_EQ(FieldViolationsOf(status).at(0).field, "name");
    }
  }
}

TEST_F(ApiJobsTest, CancelTwiceIsOnceAndEtagsAreCompared) {
  const v1::Job job = MustCreate("a");
  const absl::Status stale = Cancel("jobs/a", "\"r999\"").status();
  EXPECT_EQ(stale.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ReasonOf(stale), Reason::kEtagMismatch);
  const v1::Job cancelled = Cancel("jobs/a", job.etag()).value();
  EXPECT_EQ(cancelled.state(), v1::Job::CANCELLED);
  EXPECT_EQ(Cancel("jobs/a")->revision(), cancelled.revision());
}

TEST_F(ApiJobsTest, OnlyEndedJobsAreDeleted) {
  MustCreate("a");
  EXPECT_EQ(ReasonOf(Delete("jobs/a")), Reason::kJobNotDeletable);
  ASSERT_TRUE(Cancel("jobs/a").ok());
  EXPECT_TRUE(Delete("jobs/a").ok());
  EXPECT_EQ(ReasonOf(Get("jobs/a").status()), Reason::kJobNotFound);
}

TEST_F(ApiJobsTest, ListsInPagesNewestFirst) {
  for (const char* id : {"a", "b", "c"}) MustCreate(id);
  v1::ListJobsRequest request;
  request.set_page_size(2);
  const v1::ListJobsResponse first = List(request).value();
  ASSERT_EQ(first.jobs_size(), 2);
  EXPECT_EQ(first.jobs(0).name(), "jobs/c");
  request.set_page_token(first.next_page_token());
  const v1::ListJobsResponse second = List(request).value();
  ASSERT_EQ(second.jobs_size(), 1);
  EXPECT_EQ(second.jobs(0).name(), "jobs/a");
  EXPECT_EQ(second.next_page_token(), "");
}

TEST_F(ApiJobsTest, ListFiltersByStateAndLabel) {
  v1::CreateJobRequest labelled;
  *labelled.mutable_job() = GoodJob();
  (*labelled.mutable_job()->mutable_labels())["team"] = "nlp";
  labelled.set_job_id("labelled");
  ASSERT_TRUE(Create(labelled).ok());
  MustCreate("plain");
  ASSERT_TRUE(Cancel("jobs/plain").ok());
  v1::ListJobsRequest request;
  request.add_states(v1::Job::CANCELLED);
  EXPECT_EQ(List(request)->jobs(0).name(), "jobs/plain");
  request.clear_states();
  (*request.mutable_labels())["team"] = "nlp";
  ASSERT_EQ(List(request)->jobs_size(), 1);
  EXPECT_EQ(List(request)->jobs(0).name(), "jobs/labelled");
}

TEST_F(ApiJobsTest, WrongListArgumentsAreNamed) {
  v1::ListJobsRequest request;
  request.set_page_size(-1);
  EXPECT_EQ(FieldViolationsOf(List(request).status()).at(0).field, "page_size");
  request.set_page_size(5000);
  EXPECT_TRUE(List(request).ok());
  request.add_states(static_cast<v1::Job::State>(99));
  EXPECT_EQ(FieldViolationsOf(List(request).status()).at(0).field, "states[0]");
  request.clear_states();
  request.set_page_token("!!");
  EXPECT_EQ(ReasonOf(List(request).status()), Reason::kBadPageToken);
}

TEST_F(ApiJobsTest, HugeAndOddValuesGetSmallValidErrorsAndTheServerGoesOn) {
  const std::string megabyte(1 << 20, 'x');
  EXPECT_EQ(ReasonOf(Get(megabyte).status()), Reason::kInvalidField);
  EXPECT_EQ(ReasonOf(Get("jobs/" + megabyte).status()), Reason::kInvalidField);
  v1::CreateJobRequest request;
  *request.mutable_job() = GoodJob();
  request.set_job_id(megabyte);
  request.mutable_job()->set_display_name(megabyte);
  request.mutable_job()->mutable_spec()->mutable_training()->set_optim(megabyte);
  for (int i = 0; i < 10000; ++i) {
    (*request.mutable_job()->mutable_labels())[absl::StrCat("Key", i)] = "v";
  }
  const absl::Status status = Create(request).status();
  EXPECT_EQ(ReasonOf(status), Reason::kInvalidField);
  EXPECT_EQ(FieldViolationsOf(status).size(), 4u);
  MustCreate("after");
}

TEST_F(ApiJobsTest, BytesThatAreNoRequestAreRefusedAndTheServerGoesOn) {
  // `name` is no UTF-8; then a length beyond the end.
  for (const std::string bytes : {"\x0A\x02\xFF\xFE", "\x0A\x7Fx", "\xFF\xFF\xFF"}) {
    grpc::Slice slice(bytes.data(), bytes.size());
    const grpc::ByteBuffer buffer(&slice, 1);
    grpc::GenericStub stub(channel_);
    const auto context = NewContext();
    grpc::CompletionQueue queue;
    auto call =
        stub.PrepareUnaryCall(context.get(), "/traind.v1.JobService/GetJob", buffer, &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, &queue);
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok));
    EXPECT_FALSE(status.ok());
  }
  MustCreate("after");
}

}  // namespace
}  // namespace traind
