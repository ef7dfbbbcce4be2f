// One HTTP request over loopback, without a library.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"

namespace traind {

// Sends `request` to 127.0.0.1:`port` as it is and returns everything that comes back.
inline std::string SendHttp(int port, const std::string& request) {
  const int connection = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  EXPECT_EQ(::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_GT(::send(connection, request.data(), request.size(), 0), 0);
  std::string answer;
  char buffer[4096];
  for (ssize_t count = 0; (count = ::recv(connection, buffer, sizeof buffer, 0)) > 0;) {
    answer.append(buffer, static_cast<size_t>(count));
  }
  ::close(connection);
  return answer;
}

// The body of GET `path`.
inline std::string HttpBody(int port, const std::string& path) {
  const std::string answer = SendHttp(port, "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

}  // namespace traind
