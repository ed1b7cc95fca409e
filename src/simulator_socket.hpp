#ifndef SIMULATOR_SOCKET_HPP_
#define SIMULATOR_SOCKET_HPP_

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace constrained_sim
{

/// The plugin's end of the local socket to a simulator; constrained_sim/ros/hardware_link.py is the
/// other end. Every method throws std::runtime_error where the other end is gone.
class SimulatorSocket
{
public:
  SimulatorSocket() = default;
  SimulatorSocket(const SimulatorSocket &) = delete;
  SimulatorSocket & operator=(const SimulatorSocket &) = delete;
  ~SimulatorSocket();

  /// Connect to the simulator `node` (its full name) of a DDS domain on this machine.
  void connect(std::size_t domain, const std::string & node);

  void close();

  /// Send one packet.
  void send(const void * data, std::size_t size);

  /// Receive one packet; false where none arrives within `timeout`.
  bool receive(std::vector<char> & packet, std::chrono::milliseconds timeout);

private:
  int socket_ = -1;
};

}  // namespace constrained_sim

#endif  // SIMULATOR_SOCKET_HPP_
