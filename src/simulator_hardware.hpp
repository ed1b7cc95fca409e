#ifndef SIMULATOR_HARDWARE_HPP_
#define SIMULATOR_HARDWARE_HPP_

#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "hardware_interface/system_interface.hpp"
#include "simulated_time.hpp"
#include "simulator_socket.hpp"

namespace constrained_sim
{

/// The joints of a simulator in lock-step as hardware of ros2_control.
///
/// `read` takes the state at the end of a control period, `write` answers it with the commands of
/// the next. Parameter `simulator` is the full name of the node, `/constrained_sim` unless given.
class SimulatorHardware : public hardware_interface::SystemInterface
{
public:
  hardware_interface::CallbackReturn on_init(
    const hardware_interface::HardwareComponentInterfaceParams & params) override;
  hardware_interface::CallbackReturn on_configure(
    const rclcpp_lifecycle::State & previous) override;
  hardware_interface::CallbackReturn on_cleanup(const rclcpp_lifecycle::State & previous) override;
  hardware_interface::CallbackReturn on_shutdown(const rclcpp_lifecycle::State & previous) override;

  hardware_interface::return_type perform_command_mode_switch(
    const std::vector<std::string> & start_interfaces,
    const std::vector<std::string> & stop_interfaces) override;

  hardware_interface::return_type read(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
  hardware_interface::return_type write(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;

private:
  void greet();
  void take_state();
  void end(const std::runtime_error & reason);

  std::string simulator_;
  SimulatorSocket socket_;
  std::shared_ptr<SimulatedTime> simulated_time_;
  std::vector<std::string> states_;    // state interfaces in the order of packets; empty: none
  std::vector<std::string> commands_;  // command interfaces in that order
  std::set<std::string> claimed_;      // command interfaces that a controller has
  std::vector<char> packet_;
  std::vector<char> answer_;
  std::int64_t received_ = 0;  // number of the last state
  std::int64_t answered_ = 0;  // of the last one that was answered
};

}  // namespace constrained_sim

#endif  // SIMULATOR_HARDWARE_HPP_
