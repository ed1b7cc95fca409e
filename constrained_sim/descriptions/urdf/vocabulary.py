"""Elements and attributes of URDF. What others add to it (plugins, transmissions) is reported."""

from __future__ import annotations

from constrained_sim.descriptions.vocabulary import Rule, Vocabulary

POSE = Rule(numbers="xyz=3 rpy=3", refused={"quat_xyzw": (), "quat_wxyz": ()})

URDF = Vocabulary(
    "URDF",
    {
        "robot": Rule(
            words="name version xmlns",
            children="link joint gazebo",
            shown="material",
            unused_children="transmission sensor ros2_control",
        ),
        "link": Rule(words="name", unused="type", children="inertial collision", shown="visual"),
        "inertial": Rule(children="origin mass inertia"),
        "origin": POSE,
        "mass": Rule(numbers="value=1"),
        "inertia": Rule(numbers="ixx=1 ixy=1 ixz=1 iyy=1 iyz=1 izz=1"),
        "collision": Rule(
            words="name", unused="group", children="origin geometry", shown="material", unused_children="verbose"
        ),
        "geometry": Rule(children="box sphere cylinder capsule mesh", is_closed=True),
        "box": Rule(numbers="size=3"),
        "sphere": Rule(numbers="radius=1"),
        "cylinder": Rule(numbers="radius=1 length=1"),
        "capsule": Rule(numbers="radius=1 length=1"),
        "mesh": Rule(words="filename", numbers="scale=3"),
        "joint": Rule(
            words="name type",
            children="origin parent child axis limit dynamics mimic",
            unused_children="calibration safety_controller hardwareInterface",
        ),
        "parent": Rule(words="link"),
        "child": Rule(words="link"),
        "axis": Rule(numbers="xyz=3"),
        "limit": Rule(numbers="~lower=1 ~upper=1 ~effort=1 ~velocity=1", unused="acceleration deceleration jerk"),
        "dynamics": Rule(numbers="damping=1 friction=1"),
        "mimic": Rule(words="joint", numbers="multiplier=1 offset=1"),
        "gazebo": Rule(
            words="reference", children="mu1", unused_children="mu2 kp kd plugin sensor material selfCollide"
        ),
        "mu1": Rule(text="0-1", numbers="value=1"),
    },
    once="inertial origin mass inertia geometry parent child axis limit dynamics mimic mu1",
)
