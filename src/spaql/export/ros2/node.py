"""The node around a controller in C, and the files by which ROS 2 builds it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from spaql.export.memory.program import State
from spaql.languages import in_comment


def node(name: str, observations: Sequence[str], actions: Sequence[str], state: Sequence[State]) -> str:
    """Return the source of a node.

    Without memory it answers every message on `observation`. With memory a timer acts on the last one, every
    sample time, from the first one on; the service `reset` resets it, and `state` is published as well.
    """
    prefix, kind = name.upper(), "".join(word.capitalize() for word in name.split("_")) + "Node"
    seen = [f"observation[{j}]  {one}" for j, one in enumerate(observations)]
    notes = "\n".join(f"//   {in_comment(one)}" for one in (*seen, *actions))
    how = (
        f"// It acts on the last observation every {prefix}_SAMPLE_TIME seconds. The service is `reset`."
        if state
        else "// It answers every observation with an action."
    )
    dump = ", ".join(f"static_cast<double>(state_.{one.name})" for one in state)
    parts = _WITH_MEMORY if state else _WITHOUT_MEMORY
    return _NODE.format(
        name=name,
        prefix=prefix,
        kind=kind,
        version=version("spaql"),
        how=how,
        notes=notes,
        include='#include "std_srvs/srv/empty.hpp"\n' if state else "",
        chrono="#include <chrono>\n" if state else "",
        **{part: text.format(name=name, prefix=prefix, dump=dump) for part, text in parts.items()},
    )


_NODE = """// {name}.cpp: a ROS 2 node around {name}.c, written by spaql {version}. Edit it as you need.
//
// Topics `observation` and `action`, std_msgs/msg/Float64MultiArray:
{notes}
//
{how}
// A message of another length counts as a reading that is not valid.
#include <algorithm>
#include <array>
{chrono}#include <limits>
#include <memory>

#include "rclcpp/rclcpp.hpp"
#include "std_msgs/msg/float64_multi_array.hpp"
{include}#include "{name}.h"

class {kind} : public rclcpp::Node {{
public:
    {kind}() : rclcpp::Node("{name}")
    {{
        publisher_ = create_publisher<Message>("action", 10);
        subscription_ = create_subscription<Message>(
            "observation", 10, [this](const Message &message) {{ receive(message); }});
{made}    }}

private:
    using Message = std_msgs::msg::Float64MultiArray;

    void receive(const Message &message)
    {{
        if (message.data.size() == observation_.size()) {{
            std::copy(message.data.begin(), message.data.end(), observation_.begin());
        }} else {{
            RCLCPP_ERROR(get_logger(), "an observation has %zu numbers, not %zu", message.data.size(),
                         observation_.size());
            observation_.fill(std::numeric_limits<double>::quiet_NaN());
        }}
{received}    }}

    void act()
    {{
        std::array<double, {prefix}_ACTIONS> action{{}};
{act}
        Message message;
        message.data.assign(action.begin(), action.end());
        publisher_->publish(message);
{published}    }}

    std::array<double, {prefix}_OBSERVATIONS> observation_{{}};
    rclcpp::Publisher<Message>::SharedPtr publisher_;
    rclcpp::Subscription<Message>::SharedPtr subscription_;
{fields}}};

int main(int argc, char **argv)
{{
    rclcpp::init(argc, argv);
    rclcpp::spin(std::make_shared<{kind}>());
    rclcpp::shutdown();
    return 0;
}}
"""
_WITHOUT_MEMORY = {
    "made": "",
    "received": "        act();\n",
    "act": "        {name}_act(observation_.data(), action.data());",
    "published": "",
    "fields": "",
}
_WITH_MEMORY = {
    "made": """        state_publisher_ = create_publisher<Message>("state", 10);
        service_ = create_service<std_srvs::srv::Empty>(
            "reset", [this](const std::shared_ptr<std_srvs::srv::Empty::Request>,
                            std::shared_ptr<std_srvs::srv::Empty::Response>) {{ {name}_reset(&state_); }});
        timer_ = create_wall_timer(std::chrono::duration<double>({prefix}_SAMPLE_TIME), [this]() {{
            if (received_) {{
                act();
            }}
        }});
        {name}_reset(&state_);
""",
    "received": "        received_ = true;\n",
    "act": "        {name}_act(&state_, observation_.data(), action.data());",
    "published": """        Message state;
        state.data = {{{dump}}};
        state_publisher_->publish(state);
""",
    "fields": """    rclcpp::Publisher<Message>::SharedPtr state_publisher_;
    rclcpp::Service<std_srvs::srv::Empty>::SharedPtr service_;
    rclcpp::TimerBase::SharedPtr timer_;
    {name}_state state_{{}};
    bool received_ = false;
""",
}


def _needed(*, remembers: bool) -> list[str]:
    return ["rclcpp", "std_msgs", *(["std_srvs"] if remembers else [])]


def package(name: str, *, remembers: bool) -> str:
    """Return `package.xml`."""
    needed = "\n".join(f"  <depend>{one}</depend>" for one in _needed(remembers=remembers))
    return f"""<?xml version="1.0"?>
<package format="3">
  <name>{name.lower()}</name>
  <version>0.0.0</version>
  <description>A controller learned with spaql</description>
  <maintainer email="nobody@example.org">nobody</maintainer>
  <license>unknown</license>
  <buildtool_depend>ament_cmake</buildtool_depend>
{needed}
  <export>
    <build_type>ament_cmake</build_type>
  </export>
</package>
"""


def cmake(name: str, *, remembers: bool) -> str:
    """Return `CMakeLists.txt`."""
    needed = _needed(remembers=remembers)
    found = "\n".join(f"find_package({one} REQUIRED)" for one in ["ament_cmake", *needed])
    return f"""cmake_minimum_required(VERSION 3.8)
project({name.lower()} C CXX)

set(CMAKE_C_STANDARD 99)
set(CMAKE_CXX_STANDARD 17)
{found}

add_executable({name} {name}.cpp {name}.c)
ament_target_dependencies({name} {" ".join(needed)})
install(TARGETS {name} DESTINATION lib/${{PROJECT_NAME}})

ament_package()
"""
