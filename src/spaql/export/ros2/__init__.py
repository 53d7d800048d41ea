"""Controllers as ROS 2 nodes."""
