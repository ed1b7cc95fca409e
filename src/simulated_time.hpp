#ifndef SIMULATED_TIME_HPP_
#define SIMULATED_TIME_HPP_

#include <atomic>
#include <cstdint>

namespace constrained_sim
{

/// What the hardware plugin tells the loop of its process, as a sub-context of the ROS context.
struct SimulatedTime
{
  /// Stamp of the last state [ns]; negative before the first.
  std::atomic<std::int64_t> stamp{-1};

  /// Number of the last state, which grows with each.
  std::atomic<std::int64_t> state{0};

  /// Whether the simulator has ended.
  std::atomic<bool> is_over{false};
};

}  // namespace constrained_sim

#endif  // SIMULATED_TIME_HPP_
