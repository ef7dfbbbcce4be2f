// Streams through a real socket: WatchJob, ReadLogs, DownloadCheckpoint.
#include <fstream>
#include <thread>

#include "common/os/sha256.h"
#include "server/artifacts/job_paths.h"
#include "tests/integration/api/api_fixture.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What a stream sent and how it ended.
template <typename Message>
struct Received {
  std::vector<Message> messages;
  absl::Status status;
};

template <typename Message>
Received<Message> ReadAll(grpc::ClientReader<Message>& reader) {
  Received<Message> result;
  Message message;
  while (reader.Read(&message)) result.messages.push_back(message);
  result.status = FromGrpcStatus(reader.Finish());
  return result;
}

class ApiStreamsTest : public ApiFixture {
 protected:
  using EventReader = std::unique_ptr<grpc::ClientReader<v1::Event>>;

  void SetUp() override {
    ApiFixture::SetUp();
    StartServer();
  }

  EventReader Watch(grpc::ClientContext* context, const std::string& name, int64_t after = 0) {
    v1::WatchJobRequest request;
    request.set_name(name);
    request.set_after_sequence(after);
    return jobs_->WatchJob(context, request);
  }

  Received<v1::Event> WatchAll(const std::string& name, int64_t after = 0) {
    const auto context = NewContext();
    return ReadAll(*Watch(context.get(), name, after));
  }

  Received<v1::LogChunk> ReadLogs(const v1::ReadLogsRequest& request) {
    const auto context = NewContext();
    return ReadAll(*jobs_->ReadLogs(context.get(), request));
  }

  Received<v1::CheckpointChunk> Download(const std::string& name, int64_t offset = 0) {
    v1::DownloadCheckpointRequest request;
    request.set_name(name);
    request.set_offset(offset);
    const auto context = NewContext();
    return ReadAll(*checkpoints_->DownloadCheckpoint(context.get(), request));
  }

  artifacts::JobPaths Paths(const v1::Job& job) {
    return artifacts::JobPaths::ForJob(folder_.path(), job.uid()).value();
  }

  void WriteLog(const v1::Job& job, int attempt, const std::string& text) {
    ASSERT_TRUE(CreateDirectories(Paths(job).attempt_dir(attempt)).ok());
    std::ofstream(Paths(job).log_file(attempt), std::ios::app) << text << std::flush;
  }

  // A valid checkpoint with the files.
  void WriteCheckpoint(const v1::Job& job, int64_t step,
                       const std::vector<std::pair<std::string, std::string>>& files) {
    const std::string folder = Paths(job).checkpoint_dir(step);
    ASSERT_TRUE(CreateDirectories(folder).ok());
    std::string listed;
    for (const auto& [name, bytes] : files) {
      ASSERT_TRUE(WriteFileAtomically(folder + "/" + name, bytes).ok());
      Sha256 hash;
      hash.Update(bytes);
      absl::StrAppend(&listed, listed.empty() ? "" : ",", R"({"path":")", name,
                      R"(","size_bytes":)", bytes.size(), R"(,"sha256":")", hash.Hex(), "\"}");
    }
    const std::string manifest =
        absl::StrCat(R"({"format_version":1,"step":)", step,
                     R"(,"create_time":"2026-01-31T12:00:00Z","files":[)", listed, "]}");
    ASSERT_TRUE(WriteFileAtomically(folder + "/manifest.json", manifest).ok());
  }
};

std::vector<int64_t> Sequences(const std::vector<v1::Event>& events) {
  std::vector<int64_t> sequences;
  for (const v1::Event& event : events) {
    if (event.sequence() != 0) sequences.push_back(event.sequence());
  }
  return sequences;
}

std::string Text(const std::vector<v1::LogChunk>& chunks) {
  std::string text;
  for (const v1::LogChunk& chunk : chunks) text += chunk.data();
  return text;
}

TEST_F(ApiStreamsTest, WatchSendsTheStoredEventsAndTheEnd) {
  MustCreate("a");
  ASSERT_TRUE(controller_->AddSteps("jobs/a", 3).ok());
  ASSERT_TRUE(controller_->Succeed("jobs/a").ok());
  const auto received = WatchAll("jobs/a");
  EXPECT_TRUE(received.status.ok()) << received.status;
  EXPECT_THAT(Sequences(received.messages), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(received.messages.back().end().reason(), v1::StreamEnd::JOB_ENDED);
}

TEST_F(ApiStreamsTest, WatchResumesAfterASequence) {
  MustCreate("a");
  ASSERT_TRUE(controller_->Succeed("jobs/a").ok());
  EXPECT_THAT(Sequences(WatchAll("jobs/a", 1).messages), ElementsAre(2));
  const auto nothing_left = WatchAll("jobs/a", 2);
  ASSERT_EQ(nothing_left.messages.size(), 1u);
  EXPECT_EQ(nothing_left.messages[0].end().reason(), v1::StreamEnd::JOB_ENDED);
}

TEST_F(ApiStreamsTest, WatchReadsLongHistoriesInPages) {
  MustCreate("a");
  ASSERT_TRUE(controller_->AddSteps("jobs/a", 1203).ok());
  ASSERT_TRUE(controller_->Succeed("jobs/a").ok());
  const std::vector<int64_t> sequences = Sequences(WatchAll("jobs/a").messages);
  ASSERT_EQ(sequences.size(), 1205u);
  for (size_t i = 0; i < sequences.size(); ++i)
    EXPECT_EQ(sequences[i], static_cast<int64_t>(i + 1));
}

TEST_F(ApiStreamsTest, WatchRefusesASequenceBeyondTheNewest) {
  MustCreate("a");
  const absl::Status status = WatchAll("jobs/a", 2).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ReasonOf(status), Reason::kSequenceOutOfRange);
  EXPECT_EQ(MetadataOf(status, "last_sequence"), "1");
  EXPECT_EQ(ReasonOf(WatchAll("jobs/a", -1).status), Reason::kInvalidField);
  EXPECT_EQ(ReasonOf(WatchAll("jobs/none").status), Reason::kJobNotFound);
  EXPECT_EQ(ReasonOf(WatchAll("none").status), Reason::kInvalidField);
}

TEST_F(ApiStreamsTest, WatchFollowsWithHeartbeatsInBetween) {
  MustCreate("a");
  const auto context = NewContext();
  const EventReader reader = Watch(context.get(), "jobs/a");
  v1::Event event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.sequence(), 1);
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_TRUE(event.has_heartbeat());
  EXPECT_EQ(event.heartbeat().last_sequence(), 1);
  EXPECT_EQ(event.sequence(), 0);
  ASSERT_TRUE(controller_->AddSteps("jobs/a", 1).ok());
  do ASSERT_TRUE(reader->Read(&event));
  while (event.has_heartbeat());
  EXPECT_EQ(event.sequence(), 2);
  ASSERT_TRUE(controller_->Succeed("jobs/a").ok());
  const auto rest = ReadAll(*reader);
  EXPECT_TRUE(rest.status.ok());
  EXPECT_THAT(Sequences(rest.messages), ElementsAre(3));
}

TEST_F(ApiStreamsTest, FiftyWatchersSeeEverythingAndUnaryCallsGoOn) {
  MustCreate("a");
  std::vector<Received<v1::Event>> received(50);
  std::vector<std::thread> watchers;
  for (auto& result : received) {
    watchers.emplace_back([&] { result = WatchAll("jobs/a"); });
  }
  EXPECT_TRUE(WaitUntil([&] { return observer_.open_streams() == 50; }));
  EXPECT_TRUE(Get("jobs/a").ok());
  ASSERT_TRUE(controller_->AddSteps("jobs/a", 20).ok());
  ASSERT_TRUE(controller_->Succeed("jobs/a").ok());
  for (std::thread& watcher : watchers) watcher.join();
  for (const auto& result : received) {
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(Sequences(result.messages).size(), 22u);
    EXPECT_EQ(result.messages.back().end().reason(), v1::StreamEnd::JOB_ENDED);
  }
  EXPECT_TRUE(WaitUntil([&] { return observer_.open_streams() == 0; }));
}

TEST_F(ApiStreamsTest, AClientThatLeavesIsNoticed) {
  MustCreate("a");
  v1::Event event;
  {
    const auto context = NewContext();
    const EventReader reader = Watch(context.get(), "jobs/a");
    ASSERT_TRUE(reader->Read(&event));
    EXPECT_EQ(observer_.open_streams(), 1);
    context->TryCancel();
    ReadAll(*reader);
  }
  EXPECT_TRUE(WaitUntil([&] { return observer_.open_streams() == 0; }, absl::Seconds(5)));
  EXPECT_EQ(observer_.finished("WatchJob", absl::StatusCode::kCancelled), 1);
}

TEST_F(ApiStreamsTest, ADeletedJobEndsItsWatchers) {
  MustCreate("a");
  const auto context = NewContext();
  const EventReader reader = Watch(context.get(), "jobs/a");
  v1::Event event;
  ASSERT_TRUE(reader->Read(&event));
  const std::string uid = Get("jobs/a")->uid();
  ASSERT_TRUE(store_->DeleteJob("jobs/a").ok());
  hub_.Forget(uid);
  const auto rest = ReadAll(*reader);
  EXPECT_TRUE(rest.status.ok());
  EXPECT_EQ(rest.messages.back().end().reason(), v1::StreamEnd::JOB_DELETED);
}

TEST_F(ApiStreamsTest, AStopEndsWatchersWithItsReason) {
  MustCreate("a");
  const auto context = NewContext();
  const EventReader reader = Watch(context.get(), "jobs/a");
  v1::Event event;
  ASSERT_TRUE(reader->Read(&event));
  std::thread stopper([&] { StopServer(); });
  const auto rest = ReadAll(*reader);
  stopper.join();
  EXPECT_TRUE(rest.status.ok()) << rest.status;
  EXPECT_EQ(rest.messages.back().end().reason(), v1::StreamEnd::SERVER_STOPPING);
}

TEST_F(ApiStreamsTest, AStopWithoutTheHubEndsWatchersToo) {
  MustCreate("a");
  const auto context = NewContext();
  const EventReader reader = Watch(context.get(), "jobs/a");
  v1::Event event;
  ASSERT_TRUE(reader->Read(&event));
  std::thread stopper([&] { server_->Stop(absl::Seconds(30)); });
  const auto rest = ReadAll(*reader);
  stopper.join();
  EXPECT_EQ(rest.messages.back().end().reason(), v1::StreamEnd::SERVER_STOPPING);
}

TEST_F(ApiStreamsTest, LogsOfAnEndedAttemptComeWhole) {
  const v1::Job job = MustCreate("a");
  ASSERT_TRUE(controller_->SetAttempt("jobs/a", 1, true).ok());
  const std::string text = std::string(200'000, 'x') + "\nlast line without an end";
  WriteLog(job, 1, text);
  v1::ReadLogsRequest request;
  request.set_name("jobs/a");
  const auto received = ReadLogs(request);
  EXPECT_TRUE(received.status.ok()) << received.status;
  EXPECT_EQ(Text(received.messages), text);
  EXPECT_EQ(received.messages.back().next_offset(), static_cast<int64_t>(text.size()));
  EXPECT_EQ(received.messages.back().attempt(), 1);

  request.set_offset(200'001);
  EXPECT_EQ(Text(ReadLogs(request).messages), "last line without an end");
}

TEST_F(ApiStreamsTest, LogsFollowUntilTheAttemptEnds) {
  const v1::Job job = MustCreate("a");
  v1::ReadLogsRequest request;
  request.set_name("jobs/a");
  request.set_follow(true);
  const auto context = NewContext();
  const auto reader = jobs_->ReadLogs(context.get(), request);
  v1::LogChunk chunk;
  ASSERT_TRUE(reader->Read(&chunk)) << "a sign of life before there is an attempt";
  EXPECT_EQ(chunk.data(), "");
  WriteLog(job, 1, "one\n");
  ASSERT_TRUE(controller_->SetAttempt("jobs/a", 1, false).ok());
  do ASSERT_TRUE(reader->Read(&chunk));
  while (chunk.data().empty());
  EXPECT_EQ(chunk.data(), "one\n");
  WriteLog(job, 1, "two");
  ASSERT_TRUE(controller_->SetAttempt("jobs/a", 1, true).ok());
  const auto rest = ReadAll(*reader);
  EXPECT_TRUE(rest.status.ok()) << rest.status;
  EXPECT_EQ(Text(rest.messages), "two");
}

TEST_F(ApiStreamsTest, WrongLogRequestsAreNamed) {
  MustCreate("a");
  v1::ReadLogsRequest request;
  request.set_name("jobs/none");
  EXPECT_EQ(ReasonOf(ReadLogs(request).status), Reason::kJobNotFound);
  request.set_name("jobs/a");
  EXPECT_TRUE(ReadLogs(request).status.ok()) << "no attempt yet: an empty log";
  request.set_attempt(1);
  EXPECT_EQ(FieldViolationsOf(ReadLogs(request).status).at(0).field, "attempt");
  request.set_attempt(-1);
  EXPECT_EQ(FieldViolationsOf(ReadLogs(request).status).at(0).field, "attempt");
  request.set_attempt(0);
  request.set_offset(-1);
  EXPECT_EQ(FieldViolationsOf(ReadLogs(request).status).at(0).field, "offset");
  ASSERT_TRUE(controller_->SetAttempt("jobs/a", 1, true).ok());
  request.set_offset(10);
  EXPECT_EQ(ReadLogs(request).status.code(), absl::StatusCode::kOutOfRange);
}

TEST_F(ApiStreamsTest, AStopTellsLogFollowersToCallAgain) {
  MustCreate("a");
  v1::ReadLogsRequest request;
  request.set_name("jobs/a");
  request.set_follow(true);
  const auto context = NewContext();
  const auto reader = jobs_->ReadLogs(context.get(), request);
  v1::LogChunk chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  std::thread stopper([&] { StopServer(); });
  const auto rest = ReadAll(*reader);
  stopper.join();
  EXPECT_EQ(rest.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(rest.status), Reason::kDraining);
}

TEST_F(ApiStreamsTest, CheckpointsAreListedInPages) {
  const v1::Job job = MustCreate("a");
  for (int64_t step : {100, 20, 3}) WriteCheckpoint(job, step, {{"w.bin", "bytes"}});
  v1::ListCheckpointsRequest request;
  request.set_parent("jobs/a");
  request.set_page_size(2);
  std::vector<std::string> names;
  for (int page = 0; page < 2; ++page) {
    v1::ListCheckpointsResponse response;
    const auto context = NewContext();
    ASSERT_TRUE(checkpoints_->ListCheckpoints(context.get(), request, &response).ok());
    for (const auto& checkpoint : response.checkpoints()) names.push_back(checkpoint.name());
    request.set_page_token(response.next_page_token());
  }
  EXPECT_EQ(request.page_token(), "");
  EXPECT_THAT(names, ElementsAre("jobs/a/checkpoints/3", "jobs/a/checkpoints/20",
                                 "jobs/a/checkpoints/100"));
}

TEST_F(ApiStreamsTest, WrongCheckpointRequestsAreNamed) {
  MustCreate("a");
  const auto list = [&](const std::string& parent, const std::string& token, int page_size) {
    v1::ListCheckpointsRequest request;
    request.set_parent(parent);
    request.set_page_token(token);
    request.set_page_size(page_size);
    v1::ListCheckpointsResponse response;
    const auto context = NewContext();
    return ReasonOf(
        FromGrpcStatus(checkpoints_->ListCheckpoints(context.get(), request, &response)));
  };
  EXPECT_EQ(list("jobs/none", "", 0), Reason::kJobNotFound);
  EXPECT_EQ(list("a", "", 0), Reason::kInvalidField);
  EXPECT_EQ(list("jobs/a", "", -1), Reason::kInvalidField);
  EXPECT_EQ(list("jobs/a", "???", 0), Reason::kBadPageToken);
  // `jobs/b/checkpoints/1`: the token of another job.
  EXPECT_EQ(list("jobs/a", "am9icy9iL2NoZWNrcG9pbnRzLzE", 0), Reason::kBadPageToken);
  EXPECT_EQ(ReasonOf(Download("jobs/a/checkpoints/7").status), Reason::kCheckpointNotFound);
  EXPECT_EQ(ReasonOf(Download("jobs/a/checkpoints/../x").status), Reason::kInvalidField);
  EXPECT_EQ(ReasonOf(Download("jobs/none/checkpoints/7").status), Reason::kJobNotFound);
}

// The files of a download by name.
std::map<std::string, std::string> Files(const std::vector<v1::CheckpointChunk>& chunks) {
  std::map<std::string, std::string> files;
  std::string current;
  for (const v1::CheckpointChunk& chunk : chunks) {
    if (chunk.has_file()) current = chunk.file().path();
    files[current] += chunk.data();
  }
  return files;
}

TEST_F(ApiStreamsTest, ADownloadHasEveryFileWithItsHash) {
  const v1::Job job = MustCreate("a");
  const std::string big(150'000, 'b');
  WriteCheckpoint(job, 5, {{"big.bin", big}, {"empty.bin", ""}});
  const auto received = Download("jobs/a/checkpoints/5");
  ASSERT_TRUE(received.status.ok()) << received.status;
  const auto files = Files(received.messages);
  EXPECT_EQ(files.at("big.bin"), big);
  EXPECT_EQ(files.at("empty.bin"), "");
  EXPECT_EQ(files.count("manifest.json"), 1u);
  for (const auto& chunk : received.messages) {
    if (!chunk.has_file()) continue;
    Sha256 hash;
    hash.Update(files.at(chunk.file().path()));
    EXPECT_EQ(hash.Hex(), chunk.file().sha256()) << chunk.file().path();
  }
}

TEST_F(ApiStreamsTest, ADownloadResumesAtAnOffset) {
  const v1::Job job = MustCreate("a");
  WriteCheckpoint(job, 5, {{"a.bin", "0123456789"}, {"b.bin", "abcdef"}});
  std::string whole;
  for (const auto& chunk : Download("jobs/a/checkpoints/5").messages) whole += chunk.data();
  for (size_t offset = 0; offset <= whole.size(); ++offset) {
    const auto received = Download("jobs/a/checkpoints/5", static_cast<int64_t>(offset));
    ASSERT_TRUE(received.status.ok()) << offset << received.status;
    std::string rest;
    for (const auto& chunk : received.messages) rest += chunk.data();
    EXPECT_EQ(rest, whole.substr(offset));
    EXPECT_TRUE(rest.empty() || received.messages[0].has_file());
  }
  for (const int64_t wrong : {int64_t{-1}, static_cast<int64_t>(whole.size() + 1)}) {
    EXPECT_EQ(FieldViolationsOf(Download("jobs/a/checkpoints/5", wrong).status).at(0).field,
              "offset");
  }
}

TEST_F(ApiStreamsTest, AChangedByteIsDataLoss) {
  const v1::Job job = MustCreate("a");
  WriteCheckpoint(job, 5, {{"w.bin", std::string(150'000, 'w')}});
  std::fstream file(Paths(job).checkpoint_dir(5) + "/w.bin",
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(149'999);
  file << 'X' << std::flush;
  const absl::Status status = Download("jobs/a/checkpoints/5").status;
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReasonOf(status), Reason::kCheckpointCorrupt);
  EXPECT_THAT(std::string(status.message()), HasSubstr("w.bin"));
}

class ApiStreamLimitTest : public ApiStreamsTest {
 protected:
  void SetUp() override {
    options_.max_streams = 1;
    ApiStreamsTest::SetUp();
  }
};

TEST_F(ApiStreamLimitTest, OneStreamTooManyIsRefused) {
  MustCreate("a");
  const auto context = NewContext();
  const EventReader reader = Watch(context.get(), "jobs/a");
  v1::Event event;
  ASSERT_TRUE(reader->Read(&event));
  const absl::Status status = WatchAll("jobs/a").status;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), Reason::kTooManyStreams);
  EXPECT_TRUE(Get("jobs/a").ok());
  context->TryCancel();
}

}  // namespace
}  // namespace traind
