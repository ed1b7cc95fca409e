// The controller manager in simulated time, in lock-step with a simulator: the hardware plugin's
// read brings each state and its stamp. ros2_control's own ros2_control_node sleeps until /clock
// advances, which here waits for its commands.
//
// Parameters of the node controller_manager, beside its own:
//   wait_for_controllers (string array): let no time pass until all of these are active
//   real_time_factor (double): simulated seconds per second; 0, the default: as fast as it can

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "controller_manager/controller_manager.hpp"
#include "lifecycle_msgs/msg/state.hpp"
#include "rclcpp/executors.hpp"
#include "rclcpp/rclcpp.hpp"
#include "simulated_time.hpp"

namespace
{

using Manager = controller_manager::ControllerManager;
using Steady = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kMaxDebt = 100ms;  // of wall-clock time: a longer delay is written off

/// Not for the loop of the manager: whoever loads a controller holds the lock of the list until the
/// loop goes on.
bool are_active(const Manager & manager, const std::vector<std::string> & names)
{
  const auto controllers = manager.get_loaded_controllers();
  return std::all_of(names.begin(), names.end(), [&](const std::string & name) {
    return std::any_of(controllers.begin(), controllers.end(), [&](const auto & controller) {
      return controller.info.name == name && controller.c->get_lifecycle_state().id() ==
                                               lifecycle_msgs::msg::State::PRIMARY_STATE_ACTIVE;
    });
  });
}

/// Let the clock of the node, which the manager reads for its controllers, follow /clock no longer:
/// it would come at no certain moment. Until then the parameter is true, as the manager chooses its
/// clock and that of its controllers by it.
void leave_clock(Manager & manager)
{
  manager.set_parameter(rclcpp::Parameter("use_sim_time", false));
  while (rclcpp::ok() && manager.get_clock()->ros_time_is_active()) {
    std::this_thread::sleep_for(1ms);  // the node takes note of its parameters in a callback
  }
}

/// Set the clock of the node.
void set_clock(Manager & manager, std::int64_t nanoseconds)
{
  const auto clock = manager.get_clock();
  const std::lock_guard<std::mutex> lock(clock->get_clock_mutex());
  if (
    rcl_enable_ros_time_override(clock->get_clock_handle()) != RCL_RET_OK ||
    rcl_set_ros_time_override(clock->get_clock_handle(), nanoseconds) != RCL_RET_OK) {
    throw std::runtime_error("the clock of the controller manager cannot be set");
  }
}

/// Sleeps so that simulated time follows the wall clock times a factor.
class Pace
{
public:
  Pace(double factor, double period)
  : period_(
      factor > 0.0 ? std::chrono::duration_cast<Steady::duration>(
                       std::chrono::duration<double>(period / factor))
                   : Steady::duration::zero())
  {
  }

  void wait()
  {
    const auto now = Steady::now();
    due_ += period_;
    if (now - due_ > kMaxDebt) {
      due_ = now;
    }
    std::this_thread::sleep_until(due_);
  }

private:
  Steady::duration period_;
  Steady::time_point due_ = Steady::now();
};

void run(Manager & manager)
{
  const auto simulated = rclcpp::contexts::get_global_default_context()
                           ->get_sub_context<constrained_sim::SimulatedTime>();
  const auto awaited = manager.get_parameter_or("wait_for_controllers", std::vector<std::string>());
  const double period_s = 1.0 / manager.get_update_rate();
  const auto period = rclcpp::Duration::from_seconds(period_s);
  Pace pace(manager.get_parameter_or("real_time_factor", 0.0), period_s);
  const auto is_waiting = std::make_shared<std::atomic<bool>>(!awaited.empty());
  const auto look = manager.create_wall_timer(10ms, [&manager, awaited, is_waiting] {
    *is_waiting = *is_waiting && !are_active(manager, awaited);
  });
  std::int64_t paced = 0;  // number of the last state whose answer was due
  leave_clock(manager);
  while (rclcpp::ok()) {
    manager.read(manager.now(), period);
    if (simulated->is_over) {
      break;
    }
    if (simulated->stamp < 0) {
      std::this_thread::sleep_for(10ms);  // the hardware is not configured yet
      continue;
    }
    set_clock(manager, simulated->stamp);
    const bool holds = *is_waiting;  // looked at first: a controller has its update before a write
    manager.update(manager.now(), period);  // while time stands still too: it activates controllers
    if (holds) {
      continue;
    }
    if (simulated->state != paced) {
      paced = simulated->state;
      look->cancel();
      pace.wait();
    }
    manager.write(manager.now(), period);
  }
}

}  // namespace

int main(int argc, char ** argv)
{
  rclcpp::init(argc, argv);
  const auto executor = std::make_shared<rclcpp::executors::MultiThreadedExecutor>();
  auto options = controller_manager::get_cm_node_options();
  options.arguments({argv + 1, argv + argc});  // the manager hands them on to its controllers
  options.append_parameter_override("use_sim_time", true);
  const auto manager = std::make_shared<Manager>(executor, "controller_manager", "", options);
  std::thread loop([&manager] {
    run(*manager);
    rclcpp::shutdown();
  });
  executor->add_node(manager);
  executor->spin();
  loop.join();
  return 0;
}
