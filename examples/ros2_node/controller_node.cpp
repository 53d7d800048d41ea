#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "controller.h"
#include "rclcpp/rclcpp.hpp"
#include "std_msgs/msg/float64_multi_array.hpp"

using Message = std_msgs::msg::Float64MultiArray;

class ControllerNode : public rclcpp::Node {
public:
    ControllerNode() : rclcpp::Node("controller")
    {
        publisher_ = create_publisher<Message>("action", 10);
        subscription_ = create_subscription<Message>(
            "observation", 10, [this](const Message &message) { answer(message); });
    }

private:
    void answer(const Message &message)
    {
        std::array<double, CONTROLLER_OBSERVATIONS> observation;
        std::array<double, CONTROLLER_ACTIONS> action;
        observation.fill(std::numeric_limits<double>::quiet_NaN());  // a wrong length is no valid reading
        if (message.data.size() == observation.size()) {
            std::copy(message.data.begin(), message.data.end(), observation.begin());
        }
        controller_act(observation.data(), action.data());
        Message done;
        done.data.assign(action.begin(), action.end());
        publisher_->publish(done);
    }

    rclcpp::Publisher<Message>::SharedPtr publisher_;
    rclcpp::Subscription<Message>::SharedPtr subscription_;
};

int main(int argc, char **argv)
{
    rclcpp::init(argc, argv);
    rclcpp::spin(std::make_shared<ControllerNode>());
    rclcpp::shutdown();
}
