"""The few classes of ROS 2 that an exported node uses, so that it is compiled and run where ROS is not.

`rclcpp::spin` plays samples from a file: a reset by the service, an observation by the topic, then the timer.
"""

from __future__ import annotations

from spaql.export.played import PLAYED, SAMPLES


def stand_in(observations: int, actions: int, state: int) -> dict[str, bytes]:
    """Return the headers, by path, for a node with so many numbers."""
    text = _RCLCPP.replace("@N@", str(observations)).replace("@M@", str(actions)).replace("@K@", str(state))
    text = text.replace("@SAMPLES@", SAMPLES).replace("@PLAYED@", PLAYED)
    return {
        "rclcpp/rclcpp.hpp": text.encode(),
        "std_msgs/msg/float64_multi_array.hpp": _MESSAGE.encode(),
        "std_srvs/srv/empty.hpp": _EMPTY.encode(),
    }


_MESSAGE = """#pragma once
#include <vector>
namespace std_msgs::msg {
struct Float64MultiArray {
    std::vector<double> data;
};
}
"""
_EMPTY = """#pragma once
namespace std_srvs::srv {
struct Empty {
    struct Request {};
    struct Response {};
};
}
"""
_RCLCPP = """#pragma once
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include "std_msgs/msg/float64_multi_array.hpp"

#define RCLCPP_ERROR(logger, ...) ((void)(logger), std::fprintf(stderr, __VA_ARGS__), std::exit(1))

namespace rclcpp {
using Numbers = std_msgs::msg::Float64MultiArray;
inline std::map<std::string, std::vector<double>> published;
inline std::map<std::string, std::function<void(const Numbers &)>> subscribed;
inline std::map<std::string, std::function<void()>> services;
inline std::vector<std::function<void()>> timers;

template <class T> struct Publisher {
    using SharedPtr = std::shared_ptr<Publisher<T>>;
    std::string topic;
    void publish(const T &message) { published[topic] = message.data; }
};
template <class T> struct Subscription {
    using SharedPtr = std::shared_ptr<Subscription<T>>;
};
template <class T> struct Service {
    using SharedPtr = std::shared_ptr<Service<T>>;
};
struct TimerBase {
    using SharedPtr = std::shared_ptr<TimerBase>;
};

class Node {
public:
    explicit Node(const std::string &) {}
    virtual ~Node() = default;
    int get_logger() const { return 0; }
    template <class T> typename Publisher<T>::SharedPtr create_publisher(const std::string &topic, int)
    {
        return std::make_shared<Publisher<T>>(Publisher<T>{topic});
    }
    template <class T, class F>
    typename Subscription<T>::SharedPtr create_subscription(const std::string &topic, int, F callback)
    {
        subscribed[topic] = callback;
        return std::make_shared<Subscription<T>>();
    }
    template <class T, class F>
    typename Service<T>::SharedPtr create_service(const std::string &name, F callback)
    {
        services[name] = [callback]() {
            callback(std::make_shared<typename T::Request>(), std::make_shared<typename T::Response>());
        };
        return std::make_shared<Service<T>>();
    }
    template <class D, class F> TimerBase::SharedPtr create_wall_timer(D, F callback)
    {
        timers.push_back(callback);
        return std::make_shared<TimerBase>();
    }
};

inline void init(int, char **) {}
inline void shutdown() {}

inline void spin(const std::shared_ptr<Node> &)
{
    std::FILE *samples = std::fopen("@SAMPLES@", "rb");
    std::FILE *played = std::fopen("@PLAYED@", "wb");
    double sample[1 + @N@];
    if (samples == nullptr || played == nullptr) {
        std::exit(2);
    }
    while (std::fread(sample, sizeof sample, 1, samples) == 1) {
        if (sample[0] > 0.0) {
            services.at("reset")();
        }
        Numbers seen;
        seen.data.assign(sample + 1, sample + 1 + @N@);
        subscribed.at("observation")(seen);
        for (const auto &timer : timers) {
            timer();
        }
        std::vector<double> done = published.at("action");
        const std::vector<double> &state = published["state"];
        done.insert(done.end(), state.begin(), state.end());
        const std::size_t n = done.size();
        if (n != @M@ + @K@ || std::fwrite(done.data(), sizeof(double), n, played) != n) {
            std::exit(3);
        }
    }
    std::fclose(samples);
    std::fclose(played);
}
}
"""
