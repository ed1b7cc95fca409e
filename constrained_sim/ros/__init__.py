"""The ROS 2 node and its helpers: the only part of the package that imports rclpy."""
