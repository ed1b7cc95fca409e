#include "simulator_hardware.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "pluginlib/class_list_macros.hpp"
#include "rclcpp/rclcpp.hpp"

namespace constrained_sim
{

using hardware_interface::CallbackReturn;
using hardware_interface::return_type;
using namespace std::chrono_literals;

namespace
{

constexpr std::array<const char *, 3> kKinds = {
  hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY,
  hardware_interface::HW_IF_EFFORT};
constexpr std::size_t kStateHead = 2 * sizeof(std::int64_t);  // its number and its stamp
constexpr std::size_t kCommandHead = sizeof(std::int64_t);    // number of the state it answers
constexpr auto kPatience = 20ms;  // for a state: services of the controller manager wait as long
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::size_t index_of_kind(const std::string & joint, const std::string & interface)
{
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    if (interface == kKinds[kind]) {
      return kind;
    }
  }
  throw std::runtime_error(
    "joint '" + joint + "': no interface '" + interface + "', allowed: position, velocity, effort");
}

/// Return the names of all interfaces of joints by kind, then by joint; empty where a joint has
/// none of a kind.
template <typename Interfaces>
std::vector<std::string> names_of(
  const std::vector<hardware_interface::ComponentInfo> & joints, const Interfaces & interfaces)
{
  std::vector<std::string> names(kKinds.size() * joints.size());
  for (std::size_t place = 0; place < joints.size(); ++place) {
    for (const auto & interface : interfaces(joints[place])) {
      const auto kind = index_of_kind(joints[place].name, interface.name);
      names[kind * joints.size() + place] = joints[place].name + "/" + interface.name;
    }
  }
  return names;
}

}  // namespace

CallbackReturn SimulatorHardware::on_init(
  const hardware_interface::HardwareComponentInterfaceParams & params)
{
  if (SystemInterface::on_init(params) != CallbackReturn::SUCCESS) {
    return CallbackReturn::ERROR;
  }
  const auto given = info_.hardware_parameters.find("simulator");
  simulator_ = given == info_.hardware_parameters.end() ? "/constrained_sim" : given->second;
  simulated_time_ =
    rclcpp::contexts::get_global_default_context()->get_sub_context<SimulatedTime>();
  if (info_.is_async) {
    RCLCPP_ERROR(
      get_logger(),
      "is_async: a simulator in lock-step is read and written in the loop of the manager");
    return CallbackReturn::ERROR;
  }
  if (!info_.sensors.empty() || !info_.gpios.empty()) {
    RCLCPP_ERROR(
      get_logger(), "the simulator has joints only: its sensors are on topics of their own");
    return CallbackReturn::ERROR;
  }
  try {
    states_ =
      names_of(info_.joints, [](const auto & joint) -> auto & { return joint.state_interfaces; });
    commands_ =
      names_of(info_.joints, [](const auto & joint) -> auto & { return joint.command_interfaces; });
  } catch (const std::runtime_error & error) {
    RCLCPP_ERROR(get_logger(), "%s", error.what());
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn SimulatorHardware::on_configure(const rclcpp_lifecycle::State &)
{
  try {
    socket_.connect(rclcpp::contexts::get_global_default_context()->get_domain_id(), simulator_);
    greet();
  } catch (const std::runtime_error & error) {
    RCLCPP_ERROR(get_logger(), "%s", error.what());
    socket_.close();
    return CallbackReturn::ERROR;
  }
  received_ = answered_ = 0;
  simulated_time_->is_over = false;
  return CallbackReturn::SUCCESS;
}

CallbackReturn SimulatorHardware::on_cleanup(const rclcpp_lifecycle::State &)
{
  socket_.close();
  return CallbackReturn::SUCCESS;
}

CallbackReturn SimulatorHardware::on_shutdown(const rclcpp_lifecycle::State & previous)
{
  return on_cleanup(previous);
}

/// Tell the simulator what is wanted, and wait for its answer, while it compiles its kernels too.
void SimulatorHardware::greet()
{
  std::string text = std::to_string(info_.rw_rate);
  for (const auto & joint : info_.joints) {
    text += "\n" + joint.name;
    for (const auto & interface : joint.command_interfaces) {
      text += "\t" + interface.name;
    }
  }
  socket_.send(text.data(), text.size());
  while (!socket_.receive(packet_, 1s)) {
    if (!rclcpp::ok()) {
      throw std::runtime_error("interrupted while the simulator starts");
    }
    RCLCPP_INFO_ONCE(get_logger(), "waiting for the simulator %s to start", simulator_.c_str());
  }
  if (packet_.size() > 1) {
    throw std::runtime_error(
      "refused by the simulator: " + std::string(packet_.begin(), packet_.end()));
  }
}

return_type SimulatorHardware::perform_command_mode_switch(
  const std::vector<std::string> & start_interfaces,
  const std::vector<std::string> & stop_interfaces)
{
  for (const auto & name : stop_interfaces) {
    claimed_.erase(name);
  }
  for (const auto & name : start_interfaces) {
    if (has_command(name)) {
      set_command(name, kNone);  // what the last controller left there is no command of this one
      claimed_.insert(name);
    }
  }
  return return_type::OK;
}

return_type SimulatorHardware::read(const rclcpp::Time &, const rclcpp::Duration &)
{
  if (simulated_time_->is_over) {
    return return_type::ERROR;
  }
  try {
    if (socket_.receive(packet_, kPatience)) {
      while (socket_.receive(packet_, 0ms)) {
      }  // after a reset there are two
      take_state();
    }
  } catch (const std::runtime_error & error) {
    end(error);
  }
  return return_type::OK;
}

/// Note that the simulator has ended; in the next cycle that is an error of the hardware.
void SimulatorHardware::end(const std::runtime_error & reason)
{
  RCLCPP_INFO(get_logger(), "%s", reason.what());
  simulated_time_->is_over = true;
}

void SimulatorHardware::take_state()
{
  if (packet_.size() != kStateHead + states_.size() * sizeof(double)) {
    throw std::runtime_error(
      "a state of " + std::to_string(packet_.size()) + " bytes: another version of the simulator?");
  }
  std::array<std::int64_t, 2> head;
  std::memcpy(head.data(), packet_.data(), sizeof(head));
  for (std::size_t place = 0; place < states_.size(); ++place) {
    if (!states_[place].empty()) {
      double value;
      std::memcpy(&value, packet_.data() + kStateHead + place * sizeof(value), sizeof(value));
      set_state(states_[place], value);
    }
  }
  received_ = head[0];
  simulated_time_->stamp = head[1];
  simulated_time_->state = received_;
}

return_type SimulatorHardware::write(const rclcpp::Time &, const rclcpp::Duration &)
{
  if (received_ == answered_) {
    return return_type::OK;  // the simulator is paused: it has its answer
  }
  answer_.resize(kCommandHead + commands_.size() * sizeof(double));
  std::memcpy(answer_.data(), &received_, sizeof(received_));
  for (std::size_t place = 0; place < commands_.size(); ++place) {
    const double value = claimed_.count(commands_[place]) ? get_command(commands_[place]) : kNone;
    std::memcpy(answer_.data() + kCommandHead + place * sizeof(value), &value, sizeof(value));
  }
  try {
    socket_.send(answer_.data(), answer_.size());
  } catch (const std::runtime_error & error) {
    end(error);
  }
  answered_ = received_;
  return return_type::OK;
}

}  // namespace constrained_sim

PLUGINLIB_EXPORT_CLASS(constrained_sim::SimulatorHardware, hardware_interface::SystemInterface)
