#include "common/os/sha256.h"

#include <algorithm>

#include "absl/strings/escaping.h"

namespace traind {

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
}

void Sha256::Update(absl::string_view bytes) {
  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

std::string Sha256::Hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(context_.get(), digest, &size);
  std::string bytes(size, '\0');
  std::copy(digest, digest + size, bytes.begin());
  return absl::BytesToHexString(bytes);
}

}  // namespace traind
