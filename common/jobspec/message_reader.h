// Fills a job from JSON by the descriptors of traind.v1, and collects everything that is wrong.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/jobspec/json_document.h"
#include "common/status/errors.h"
#include "google/protobuf/message.h"
#include "traind/v1/job.pb.h"

namespace traind::jobspec {

// Where a value stands.
struct FieldPlace {
  std::string written;    // In the file: `training.evaluation_strategy`.
  std::string canonical;  // In the job: `spec.training.eval_strategy`.

  FieldPlace Child(const std::string& name) const;
  FieldPlace Element(size_t index) const;
};

// Thread-compatible. Use one for each job.
class MessageReader {
 public:
  // `job` is filled and must outlive the reader. Relative paths are resolved against `folder`.
  MessageReader(v1::Job* job, std::string folder);

  // REQUIRES: `root` is an object.
  void ReadJob(const Json& root);

  const std::vector<FieldViolation>& problems() const { return problems_; }
  const std::map<std::string, std::string>& written_as() const { return written_as_; }

 private:
  using Message = google::protobuf::Message;
  using Field = google::protobuf::FieldDescriptor;

  void Problem(const FieldPlace& place, std::string description);
  void Expected(const FieldPlace& place, absl::string_view what, const Json& got);

  void ReadMembers(const Json& object, const FieldPlace& place, Message* message);
  void ReadMember(const std::string& name, const Json& value, const FieldPlace& parent,
                  Message* message);
  // Reads a value written as `written` into the field at the path `target` from the job.
  void ReadAliased(const std::string& target, const Json& value, const std::string& written);
  void ReadUnknown(const std::string& name, const Json& value, const FieldPlace& parent,
                   const google::protobuf::Descriptor* type);

  void ReadField(const Json& value, const FieldPlace& place, const Field* field, Message* message);
  void ReadRepeated(const Json& value, const FieldPlace& place, const Field* field,
                    Message* message);
  void ReadMap(const Json& value, const FieldPlace& place, const Field* field, Message* message);
  void ReadSubmessage(const Json& value, const FieldPlace& place, Message* message);
  void ReadScalar(const Json& value, const FieldPlace& place, const Field* field, Message* message);
  void ReadInteger(const Json& value, const FieldPlace& place, const Field* field,
                   Message* message);
  void ReadDouble(const Json& value, const FieldPlace& place, const Field* field, Message* message);
  void ReadEnum(const Json& value, const FieldPlace& place, const Field* field, Message* message);
  void ReadString(const Json& value, const FieldPlace& place, const Field* field, Message* message);
  void ReadDuration(const Json& value, const FieldPlace& place, Message* message);

  v1::Job* job_;
  std::string folder_;
  std::map<std::string, std::string> written_as_;  // Canonical to written.
  std::vector<FieldViolation> problems_;
};

}  // namespace traind::jobspec
