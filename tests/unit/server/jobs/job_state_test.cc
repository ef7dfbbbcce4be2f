#include "server/jobs/job_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/os/file.h"
#include "common/status/errors.h"

namespace traind::jobs {
namespace {

using Key = std::pair<v1::Job::State, JobEvent>;

// What the cells of the written table mean.
const std::map<std::string, JobEvent>& CellMeanings() {
  static const auto& meanings = *new std::map<std::string, JobEvent>{
      {"placed", JobEvent::kPlaced},
      {"all ranks stepped", JobEvent::kAllRanksStepped},
      {"start failed, retry left", JobEvent::kAttemptLostRetry},
      {"worker lost, retry left", JobEvent::kAttemptLostRetry},
      {"no retry left", JobEvent::kAttemptLostFinal},
      {"lost, no retry left", JobEvent::kAttemptLostFinal},
      {"can never fit", JobEvent::kNeverFits},
      {"pause", JobEvent::kPauseRequested},
      {"checkpoint durable, devices free", JobEvent::kPaused},
      {"resume", JobEvent::kResumeRequested},
      {"cancel", JobEvent::kCancelRequested},
      {"workers gone, devices verified free", JobEvent::kWorkersGone},
      {"done, artifacts durable", JobEvent::kFinished},
      {"finished anyway", JobEvent::kFinished},
  };
  return meanings;
}

v1::Job::State StateNamed(const std::string& name) {
  v1::Job::State state = v1::Job::STATE_UNSPECIFIED;
  EXPECT_TRUE(v1::Job::State_Parse(name, &state)) << name;
  return state;
}

std::vector<std::string> Cells(const std::string& line) {
  std::vector<std::string> cells = absl::StrSplit(line, '|');
  for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
  return cells;
}

// The table of docs/job-lifecycle.md, where users read it.
std::map<Key, v1::Job::State> WrittenTable() {
  std::map<Key, v1::Job::State> table;
  const auto page = ReadFile(TRAIND_SOURCE_DIR "/docs/job-lifecycle.md");
  EXPECT_TRUE(page.ok());
  std::vector<std::string> heads;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(*page, '\n'))) {
    if (absl::StartsWith(line, "| from \\ to |")) heads = Cells(line);
    if (heads.empty() || !absl::StartsWith(line, "| ") || absl::StartsWith(line, "| from"))
      continue;
    const std::vector<std::string> cells = Cells(line);
    for (size_t column = 2; column + 1 < cells.size(); ++column) {
      if (cells[column] == "–") continue;
      const auto meaning = CellMeanings().find(cells[column]);
      if (meaning == CellMeanings().end()) {
        ADD_FAILURE() << "unknown cell: " << cells[column];
        continue;
      }
      table[{StateNamed(cells[1]), meaning->second}] = StateNamed(heads[column]);
    }
  }
  // Cancelling twice is no change of state and so has no cell.
  table[{v1::Job::CANCELLING, JobEvent::kCancelRequested}] = v1::Job::CANCELLING;
  return table;
}

std::vector<v1::Job::State> AllStates() {
  std::vector<v1::Job::State> states;
  const auto* descriptor = v1::Job::State_descriptor();
  for (int i = 0; i < descriptor->value_count(); ++i) {
    states.push_back(static_cast<v1::Job::State>(descriptor->value(i)->number()));
  }
  return states;
}

std::vector<JobEvent> AllEvents() {
  std::vector<JobEvent> events;
  for (int i = 0; i <= static_cast<int>(JobEvent::kFinished); ++i) {
    events.push_back(static_cast<JobEvent>(i));
  }
  return events;
}

TEST(JobStateTest, EveryPairIsAsTheWrittenTableSays) {
  const std::map<Key, v1::Job::State> table = WrittenTable();
  ASSERT_EQ(table.size(), 23u);
  for (const v1::Job::State from : AllStates()) {
    for (const JobEvent event : AllEvents()) {
      SCOPED_TRACE(testing::Message()
                   << v1::Job::State_Name(from) << " × event " << static_cast<int>(event));
      const absl::StatusOr<v1::Job::State> to = Transition(from, event);
      const auto written = table.find({from, event});
      ASSERT_EQ(to.ok(), written != table.end());
      if (to.ok()) {
        EXPECT_EQ(*to, written->second);
      } else {
        EXPECT_EQ(to.status().code(), absl::StatusCode::kFailedPrecondition);
      }
    }
  }
}

TEST(JobStateTest, EveryEventIsUsedByTheTable) {
  std::set<JobEvent> used;
  for (const auto& [key, to] : WrittenTable()) used.insert(key.second);
  EXPECT_EQ(used.size(), AllEvents().size());
}

TEST(JobStateTest, NothingLeavesATerminalState) {
  for (const v1::Job::State state : AllStates()) {
    bool leaves = false;
    for (const JobEvent event : AllEvents()) leaves |= Transition(state, event).ok();
    EXPECT_EQ(leaves, !IsTerminal(state) && state != v1::Job::STATE_UNSPECIFIED)
        << v1::Job::State_Name(state);
  }
}

TEST(JobStateTest, ThreeStatesAreTerminal) {
  std::vector<v1::Job::State> terminal;
  for (const v1::Job::State state : AllStates()) {
    if (IsTerminal(state)) terminal.push_back(state);
  }
  EXPECT_THAT(terminal, testing::UnorderedElementsAre(v1::Job::SUCCEEDED, v1::Job::FAILED,
                                                      v1::Job::CANCELLED));
}

TEST(JobStateTest, AStateOfANewerDaemonIsNotTerminalAndAllowsNothing) {
  const auto unknown = static_cast<v1::Job::State>(77);
  EXPECT_FALSE(IsTerminal(unknown));
  const absl::Status status = Transition(unknown, JobEvent::kPlaced).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(MetadataOf(status, "state"), "77");
}

TEST(JobStateTest, AnIllegalCancelNamesTheState) {
  const absl::Status status = Transition(v1::Job::SUCCEEDED, JobEvent::kCancelRequested).status();
  EXPECT_EQ(ReasonOf(status), Reason::kJobNotCancellable);
  EXPECT_EQ(status.message(), "a job in state SUCCEEDED cannot be cancelled");
  EXPECT_EQ(MetadataOf(status, "state"), "SUCCEEDED");
}

TEST(JobStateTest, EveryIllegalEventHasAMessageOfItsOwn) {
  std::set<std::string> messages;
  for (const JobEvent event : AllEvents()) {
    messages.insert(std::string(Transition(v1::Job::FAILED, event).status().message()));
  }
  EXPECT_EQ(messages.size(), AllEvents().size());
}

}  // namespace
}  // namespace traind::jobs
