#include "worker/session/report_spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

constexpr size_t kHeaderBytes = 16;
constexpr uint32_t kMaxPayloadBytes = 16 << 20;
constexpr size_t kMaxWaitingBytes = 16 << 20;

std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (0xEDB88320u & (0u - (value & 1u)));
    table[i] = value;
  }
  return table;
}

uint32_t Crc32(absl::string_view bytes) {
  static const std::array<uint32_t, 256> table = MakeCrcTable();
  uint32_t crc = 0xFFFFFFFFu;
  for (const char byte : bytes)
    crc = table[(crc ^ static_cast<uint8_t>(byte)) & 0xFFu] ^ (crc >> 8);
  return ~crc;
}

template <typename T>
void Store(T value, char* at) {
  std::memcpy(at, &value, sizeof value);
}

template <typename T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::string EncodeFrame(int64_t number, const std::string& payload) {
  std::string frame(kHeaderBytes, '\0');
  Store(static_cast<uint32_t>(payload.size()), frame.data());
  Store(number, frame.data() + 8);
  frame += payload;
  Store(Crc32(absl::string_view(frame).substr(8)), frame.data() + 4);
  return frame;
}

int64_t FrameNumber(const std::string& frame) { return Load<int64_t>(frame.data() + 8); }

bool ReadFully(int descriptor, char* into, size_t size, int64_t offset) {
  while (size > 0) {
    const ssize_t count = ::pread(descriptor, into, size, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    into += count;
    size -= static_cast<size_t>(count);
    offset += count;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReportSpool>> ReportSpool::Open(const std::string& path,
                                                               int64_t trim_bytes) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return ErrnoError(errno, Reason::kOutputFailed, "open report spool", path);
  std::unique_ptr<ReportSpool> spool(new ReportSpool(descriptor, path, trim_bytes));
  spool->Recover();
  return spool;
}

ReportSpool::ReportSpool(int descriptor, std::string path, int64_t trim_bytes)
    : descriptor_(descriptor), path_(std::move(path)), trim_bytes_(trim_bytes) {}

ReportSpool::~ReportSpool() { ::close(descriptor_); }

int64_t ReportSpool::last_number() const {
  absl::MutexLock lock(&mutex_);
  return last_number_;
}

bool ReportSpool::ReadFrame(int64_t offset, Frame& frame) const {
  char header[kHeaderBytes];
  if (!ReadFully(descriptor_, header, sizeof header, offset)) return false;
  const uint32_t size = Load<uint32_t>(header);
  if (size > kMaxPayloadBytes) return false;
  std::string checked(header + 8, 8);
  checked.resize(8 + size);
  const auto payload_offset = offset + static_cast<int64_t>(kHeaderBytes);
  if (!ReadFully(descriptor_, checked.data() + 8, size, payload_offset)) return false;
  if (Crc32(checked) != Load<uint32_t>(header + 4)) return false;
  frame.number = Load<int64_t>(checked.data());
  frame.payload = checked.substr(8);
  frame.end = payload_offset + size;
  return true;
}

void ReportSpool::Recover() {
  absl::MutexLock lock(&mutex_);
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0) return;
  Frame frame;
  while (end_ < info.st_size && ReadFrame(end_, frame)) {
    last_number_ = frame.number;
    end_ = frame.end;
  }
}

absl::Status ReportSpool::WriteFrame(const std::string& frame) {
  size_t done = 0;
  while (done < frame.size()) {
    const ssize_t count = ::pwrite(descriptor_, frame.data() + done, frame.size() - done,
                                   end_ + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoError(errno, Reason::kOutputFailed, "write report spool", path_);
    done += static_cast<size_t>(count);
  }
  end_ += static_cast<int64_t>(frame.size());
  return absl::OkStatus();
}

absl::Status ReportSpool::WriteWaiting() {
  while (!waiting_.empty()) {
    TRAIND_RETURN_IF_ERROR(WriteFrame(waiting_.front()));
    waiting_bytes_ -= waiting_.front().size();
    waiting_.pop_front();
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ReportSpool::Append(worker::v1::Report report) {
  absl::MutexLock lock(&mutex_);
  report.set_number(last_number_ + 1);
  std::string frame = EncodeFrame(report.number(), report.SerializeAsString());
  absl::Status written = WriteWaiting();
  if (written.ok()) written = WriteFrame(frame);
  if (!written.ok()) {
    if (waiting_bytes_ > kMaxWaitingBytes && !report.has_finished()) return written;
    waiting_bytes_ += frame.size();
    waiting_.push_back(std::move(frame));
  }
  return ++last_number_;
}

absl::Status ReportSpool::Sync() {
  {
    absl::MutexLock lock(&mutex_);
    TRAIND_RETURN_IF_ERROR(WriteWaiting());
  }
  if (::fdatasync(descriptor_) == 0) return absl::OkStatus();
  return ErrnoError(errno, Reason::kOutputFailed, "sync report spool", path_);
}

ReportSpool::Position ReportSpool::Seek(int64_t number) const {
  Position at;
  if (number >= acknowledged_.number) at = acknowledged_;
  if (number >= read_.number && read_.number >= at.number) at = read_;
  Frame frame;
  while (at.number < number && at.offset < end_ && ReadFrame(at.offset, frame) &&
         frame.number <= number) {
    at = {frame.number, frame.end};
  }
  return at;
}

absl::StatusOr<std::vector<worker::v1::Report>> ReportSpool::ReadAfter(int64_t number,
                                                                       size_t limit) {
  absl::MutexLock lock(&mutex_);
  std::vector<worker::v1::Report> reports;
  read_ = Seek(number);
  Frame frame;
  while (reports.size() < limit && read_.offset < end_) {
    if (!ReadFrame(read_.offset, frame)) {
      return Error(absl::StatusCode::kDataLoss, Reason::kOutputFailed,
                   absl::StrCat("report spool ", path_, " is damaged at byte ", read_.offset),
                   {{"path", path_}});
    }
    read_ = {frame.number, frame.end};
    if (!frame.payload.empty()) reports.emplace_back().ParseFromString(frame.payload);
  }
  for (const std::string& waiting : waiting_) {
    if (reports.size() >= limit) break;
    if (FrameNumber(waiting) <= number || waiting.size() == kHeaderBytes) continue;
    reports.emplace_back().ParseFromString(waiting.substr(kHeaderBytes));
  }
  return reports;
}

void ReportSpool::Acknowledge(int64_t number) {
  absl::MutexLock lock(&mutex_);
  if (number <= acknowledged_.number) return;
  acknowledged_ = Seek(std::min(number, last_number_));
  TrimIfLarge();
}

void ReportSpool::TrimIfLarge() {
  if (end_ < trim_bytes_ || acknowledged_.number < last_number_ || !waiting_.empty()) return;
  if (::ftruncate(descriptor_, 0) != 0) return;
  // The marker is written at once: a process that opens the file again must not count from 1.
  end_ = 0;
  acknowledged_ = read_ = Position();
  std::string marker = EncodeFrame(last_number_, "");
  if (!WriteFrame(marker).ok()) {
    waiting_bytes_ += marker.size();
    waiting_.push_back(std::move(marker));
  }
}

}  // namespace traind
