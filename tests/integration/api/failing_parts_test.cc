// What callers see when the parts behind the API fail.
#include "tests/integration/api/api_fixture.h"

namespace traind {
namespace {

// Answers everything with one error.
class FailingController : public controller::JobController {
 public:
  explicit FailingController(absl::Status error) : error_(std::move(error)) {}

  absl::StatusOr<v1::Job> CreateJob(const v1::CreateJobRequest&, const std::string&) override {
    return error_;
  }
  absl::StatusOr<v1::Job> CancelJob(const std::string&, const std::string&) override {
    return error_;
  }
  absl::Status DeleteJob(const std::string&, const std::string&) override { return error_; }
  std::vector<DeviceUse> ListDeviceUse() override { return {{"cpu0", ""}}; }

 private:
  const absl::Status error_;
};

class ApiFailingPartsTest : public ApiFixture {
 protected:
  // What CancelJob answers when the controller fails with `error`.
  absl::Status CancelWith(const absl::Status& error) {
    FailingController failing(error);
    events::EventHub hub;
    options_.config.set_listen_unix(folder_.File("failing.sock"));
    const auto server =
        api::ApiServer::Start(options_, {&failing, store_.get(), &hub, &observer_, &clock_});
    EXPECT_TRUE(server.ok()) << server.status();
    Connect((*server)->addresses()[0], grpc::InsecureChannelCredentials());
    v1::CancelJobRequest request;
    request.set_name("jobs/a");
    v1::Job job;
    const auto context = NewContext();
    return FromGrpcStatus(jobs_->CancelJob(context.get(), request, &job));
  }
};

TEST_F(ApiFailingPartsTest, ReasonAndDetailsPassUnchanged) {
  const absl::Status full =
      CancelWith(Error(absl::StatusCode::kResourceExhausted, Reason::kQueueFull, "1000 jobs wait",
                       {{"limit", "1000"}}));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(full), Reason::kQueueFull);
  EXPECT_EQ(MetadataOf(full, "limit"), "1000");
  EXPECT_EQ(full.message(), "1000 jobs wait");
  EXPECT_EQ(observer_.finished("CancelJob", absl::StatusCode::kResourceExhausted), 1);
}

TEST_F(ApiFailingPartsTest, AnErrorWithoutAReasonIsABugOfOurs) {
  const absl::Status bug = CancelWith(absl::InternalError("what is this"));
  EXPECT_EQ(bug.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ReasonOf(bug), Reason::kBug);
}

TEST_F(ApiFailingPartsTest, AHugeMessageIsCutAndArrives) {
  const absl::Status huge =
      CancelWith(Error(absl::StatusCode::kInternal, Reason::kBug, std::string(1 << 20, 'm'),
                       {{"a", std::string(1 << 20, 'v')}}));
  EXPECT_EQ(huge.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ReasonOf(huge), Reason::kBug);
  EXPECT_LE(huge.message().size(), 1024u);
}

TEST_F(ApiFailingPartsTest, BytesThatAreNoTextArriveAsText) {
  const absl::Status status = CancelWith(Error(absl::StatusCode::kInternal, Reason::kOutputFailed,
                                               "cannot write /\xFF", {{"path", "/\xFF"}}));
  EXPECT_EQ(ReasonOf(status), Reason::kOutputFailed);
  EXPECT_EQ(MetadataOf(status, "path"), "/?");
}

}  // namespace
}  // namespace traind
