#include "simulator_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace constrained_sim
{

namespace
{
constexpr std::size_t kLongestPacket = 1 << 16;  // [bytes]
}  // namespace

SimulatorSocket::~SimulatorSocket() { close(); }

void SimulatorSocket::connect(std::size_t domain, const std::string & node)
{
  close();
  // In Linux's abstract namespace: the name begins with a zero, and is as long as the address says.
  const std::string name = "constrained_sim/" + std::to_string(domain) + node;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof(address.sun_path)) {
    throw std::runtime_error("the name of the simulator is too long: " + node);
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (socket_ < 0 || ::connect(socket_, reinterpret_cast<sockaddr *>(&address), size) < 0) {
    const std::string why = std::strerror(errno);
    close();
    throw std::runtime_error(
      "no simulator " + node + " in lock-step on this machine in domain " + std::to_string(domain) +
      " (" + why + "): start it first, with clock_mode: lockstep");
  }
}

void SimulatorSocket::close()
{
  if (socket_ >= 0) {
    ::close(socket_);
    socket_ = -1;
  }
}

void SimulatorSocket::send(const void * data, std::size_t size)
{
  if (::send(socket_, data, size, MSG_NOSIGNAL) != static_cast<ssize_t>(size)) {
    throw std::runtime_error("the simulator has ended");
  }
}

bool SimulatorSocket::receive(std::vector<char> & packet, std::chrono::milliseconds timeout)
{
  pollfd waited{socket_, POLLIN, 0};
  if (::poll(&waited, 1, static_cast<int>(timeout.count())) <= 0) {
    return false;  // nothing came, or a signal
  }
  packet.resize(kLongestPacket);
  const ssize_t size = ::recv(socket_, packet.data(), packet.size(), 0);
  if (size <= 0) {
    throw std::runtime_error("the simulator has ended");
  }
  packet.resize(static_cast<std::size_t>(size));
  return true;
}

}  // namespace constrained_sim
