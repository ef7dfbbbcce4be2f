#include "server/controller/request_hash.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace traind::controller {
namespace {

// Maps in the order of their keys, or the same request would have many forms.
std::string DeterministicBytes(const v1::CreateJobRequest& request) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  request.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/
uint64_t Fnv1a(const std::string& bytes, uint64_t hash = 0xcbf29ce484222325u) {
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace

uint64_t HashRequest(const v1::CreateJobRequest& request, const std::string& owner) {
  v1::CreateJobRequest asked = request;
  asked.clear_request_id();
  return Fnv1a(DeterministicBytes(asked), Fnv1a(owner));
}

}  // namespace traind::controller
