#include "server/store/job_queries.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status/errors.h"
#include "server/jobs/job_state.h"
#include "server/store/page_token.h"

namespace traind::store {
namespace {

constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 1000;

// A record that was stored by this program is always readable; if not, the disk changed it.
template <typename Message>
absl::Status Parse(absl::string_view bytes, Message* message) {
  if (message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::OkStatus();
  }
  return Error(absl::StatusCode::kDataLoss, Reason::kStoreInvalid,
               absl::StrCat("a stored ", message->GetTypeName(),
                            " is damaged; restore the database from a copy"),
               {{"type", message->GetTypeName()}});
}

// Every row's first column as a message.
template <typename Message>
absl::StatusOr<std::vector<Message>> ReadAll(Statement& statement) {
  std::vector<Message> messages;
  while (true) {
    TRAIND_ASSIGN_OR_RETURN(const bool found, statement.Step());
    if (!found) return messages;
    TRAIND_RETURN_IF_ERROR(Parse(statement.Bytes(0), &messages.emplace_back()));
  }
}

absl::StatusOr<JobRecord> WithAttempts(Database& database, v1::Job job) {
  Statement statement(database, "SELECT record FROM attempts WHERE job_uid = ? ORDER BY number");
  statement.Bind(job.uid());
  JobRecord record;
  record.job = std::move(job);
  TRAIND_ASSIGN_OR_RETURN(record.attempts, ReadAll<storage::v1::AttemptRecord>(statement));
  return record;
}

// Where a page begins: behind the job that was created then and has this uid.
struct PageKey {
  int64_t create_ns = 0;
  std::string uid;
};

std::string EncodeKey(const PageKey& key) { return absl::StrCat(key.create_ns, "/", key.uid); }

absl::StatusOr<PageKey> DecodeKey(const JobQuery& query) {
  TRAIND_ASSIGN_OR_RETURN(const std::string text,
                          DecodePageToken(query.page_token, HashQuery(query)));
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('/', 1));
  PageKey key;
  key.uid = parts.second;
  if (!absl::SimpleAtoi(parts.first, &key.create_ns)) return BadPageToken();
  return key;
}

std::string PageSql(const JobQuery& query) {
  std::vector<std::string> conditions;
  if (!query.page_token.empty()) conditions.push_back("(create_ns, uid) < (?, ?)");
  if (!query.states.empty()) {
    const std::vector<std::string> marks(query.states.size(), "?");
    conditions.push_back(absl::StrCat("state IN (", absl::StrJoin(marks, ","), ")"));
  }
  for (size_t i = 0; i < query.labels.size(); ++i) {
    conditions.push_back(
        "EXISTS (SELECT 1 FROM job_labels WHERE job_uid = uid AND key = ? AND value = ?)");
  }
  const std::string where =
      conditions.empty() ? "" : absl::StrCat(" WHERE ", absl::StrJoin(conditions, " AND "));
  return absl::StrCat("SELECT record, create_ns FROM jobs", where,
                      " ORDER BY create_ns DESC, uid DESC LIMIT ?");
}

absl::Status BindPage(const JobQuery& query, int limit, Statement& statement) {
  if (!query.page_token.empty()) {
    TRAIND_ASSIGN_OR_RETURN(const PageKey key, DecodeKey(query));
    statement.Bind(key.create_ns).Bind(key.uid);
  }
  for (const v1::Job::State state : query.states) statement.Bind(static_cast<int64_t>(state));
  for (const auto& [key, value] : query.labels) statement.Bind(key).Bind(value);
  statement.Bind(static_cast<int64_t>(limit));
  return absl::OkStatus();
}

int PageSize(const JobQuery& query) {
  return query.page_size <= 0 ? kDefaultPageSize : std::min(query.page_size, kMaxPageSize);
}

absl::Status CheckJobExists(Database& database, const std::string& job_uid) {
  Statement statement(database, "SELECT 1 FROM jobs WHERE uid = ?");
  TRAIND_ASSIGN_OR_RETURN(const bool found, statement.Bind(job_uid).Step());
  return found ? absl::OkStatus() : JobNotFound(job_uid);
}

}  // namespace

absl::Status JobNotFound(absl::string_view name) {
  return Error(absl::StatusCode::kNotFound, Reason::kJobNotFound,
               absl::StrCat("no job `", name, "`; `job list` shows what there is"),
               {{"job", name}});
}

absl::StatusOr<JobRecord> ReadJob(Database& database, const std::string& name) {
  Statement statement(database, "SELECT record FROM jobs WHERE name = ?");
  TRAIND_ASSIGN_OR_RETURN(const bool found, statement.Bind(name).Step());
  if (!found) return JobNotFound(name);
  v1::Job job;
  TRAIND_RETURN_IF_ERROR(Parse(statement.Bytes(0), &job));
  return WithAttempts(database, std::move(job));
}

absl::StatusOr<JobPage> ReadPage(Database& database, const JobQuery& query) {
  const int page_size = PageSize(query);
  Statement statement(database, PageSql(query));
  // One more than asked for tells whether there is another page.
  TRAIND_RETURN_IF_ERROR(BindPage(query, page_size + 1, statement));
  JobPage page;
  PageKey last;
  while (true) {
    TRAIND_ASSIGN_OR_RETURN(const bool found, statement.Step());
    if (!found) return page;
    if (static_cast<int>(page.jobs.size()) == page_size) break;
    TRAIND_RETURN_IF_ERROR(Parse(statement.Bytes(0), &page.jobs.emplace_back()));
    last = {statement.Int(1), page.jobs.back().uid()};
  }
  page.next_page_token = EncodePageToken(EncodeKey(last), HashQuery(query));
  return page;
}

absl::StatusOr<std::vector<JobRecord>> ReadActiveJobs(Database& database) {
  const std::vector<int> ended = {v1::Job::SUCCEEDED, v1::Job::FAILED, v1::Job::CANCELLED};
  Statement statement(database,
                      absl::StrCat("SELECT record FROM jobs WHERE state NOT IN (",
                                   absl::StrJoin(ended, ","), ") ORDER BY create_ns, uid"));
  TRAIND_ASSIGN_OR_RETURN(std::vector<v1::Job> jobs, ReadAll<v1::Job>(statement));
  std::vector<JobRecord> records;
  for (v1::Job& job : jobs) {
    TRAIND_ASSIGN_OR_RETURN(JobRecord record, WithAttempts(database, std::move(job)));
    records.push_back(std::move(record));
  }
  return records;
}

absl::StatusOr<std::map<v1::Job::State, int64_t>> ReadCounts(Database& database) {
  Statement statement(database, "SELECT state, COUNT(*) FROM jobs GROUP BY state");
  std::map<v1::Job::State, int64_t> counts;
  while (true) {
    TRAIND_ASSIGN_OR_RETURN(const bool found, statement.Step());
    if (!found) return counts;
    counts[static_cast<v1::Job::State>(statement.Int(0))] = statement.Int(1);
  }
}

absl::StatusOr<std::vector<v1::Event>> ReadEventsAfter(Database& database,
                                                       const std::string& job_uid, int64_t after,
                                                       int limit) {
  Statement statement(database,
                      "SELECT event FROM events WHERE job_uid = ? AND sequence > ? "
                      "ORDER BY sequence LIMIT ?");
  statement.Bind(job_uid).Bind(after).Bind(static_cast<int64_t>(limit));
  TRAIND_ASSIGN_OR_RETURN(std::vector<v1::Event> events, ReadAll<v1::Event>(statement));
  if (events.empty()) TRAIND_RETURN_IF_ERROR(CheckJobExists(database, job_uid));
  return events;
}

}  // namespace traind::store
