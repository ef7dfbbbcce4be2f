// SHA-256 of bytes that come in pieces.
#pragma once

#include <openssl/evp.h>

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace traind {

// Thread-compatible.
class Sha256 {
 public:
  Sha256();

  void Update(absl::string_view bytes);
  // Lower-case hex. Ends the use of this object.
  std::string Hex();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };

  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace traind
