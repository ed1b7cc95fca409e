"""A tree of bodies as URDF: read again, it is the same robot."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest

from constrained_sim import Robot, load_config
from constrained_sim.descriptions.urdf.writer import urdf_of

CONFIG = Path(__file__).parents[1] / "config"
MJCF = """<mujoco model="crane"><worldbody>
  <body name="tower" pos="0 0 1"><joint name="turn" type="hinge" axis="0 0 1" pos="0.1 0 0" range="-90 90"/>
    <geom type="box" size="0.1 0.1 0.5" mass="3"/>
    <body name="arm" pos="0 0.2 0.5" euler="0 30 0"><joint name="reach" type="slide" axis="0 1 0" range="0 1"/>
      <geom type="capsule" fromto="0 0 0 0 0.8 0" size="0.05" mass="1"/></body>
  </body>
</worldbody></mujoco>"""


def cassie():
    return load_config(CONFIG / "cassie.yaml").robot


def crane():
    return Robot.from_mjcf(MJCF)


@pytest.mark.parametrize("make", [cassie, crane])
def test_tree_is_the_same_robot(make):
    """Joints, limits, masses, and where every link is for the same joint values."""
    robot = make()
    again = Robot.from_urdf(urdf_of(robot), floating_base=robot.floating_base)
    assert again.mass == pytest.approx(robot.mass, rel=1e-12)
    single = [name for name, joint in robot.joint_models.items() if joint.nv == 1]
    assert set(single) <= set(again.joint_names)
    rng = np.random.default_rng(2)
    q, p = robot.neutral(), again.neutral()
    if robot.floating_base:
        p[:7] = q[:7]  # where the base is, a URDF does not say
    for name in single:
        one, other = robot.joint_models[name], again.joint_models[name]
        assert (one.nq, one.nv) == (other.nq, other.nv)
        if one.nq == 1:
            limits = (robot.model.lowerPositionLimit, robot.model.upperPositionLimit)
            expected = [np.clip(limit[one.idx_q], -1e9, 1e9) for limit in limits]
            written = (again.model.lowerPositionLimit, again.model.upperPositionLimit)
            assert [limit[other.idx_q] for limit in written] == pytest.approx(expected)
            q[one.idx_q] = p[other.idx_q] = rng.uniform(-0.5, 0.5)
    for model, configuration in ((robot.model, q), (again.model, p)):
        assert np.isfinite(configuration).all() and model.nq == len(configuration)
    placed = [placements(one, configuration) for one, configuration in ((robot, q), (again, p))]
    assert placed[0].keys() <= placed[1].keys()
    for link, placement in placed[0].items():
        np.testing.assert_allclose(placed[1][link], placement, atol=1e-12)
    masses = [pin.crba(r.model, r.model.createData(), c) for r, c in ((robot, q), (again, p))]
    for name in single:
        v, w = robot.joint_models[name].idx_v, again.joint_models[name].idx_v
        assert masses[1][w, w] == pytest.approx(masses[0][v, v] - robot.model.armature[v], rel=1e-9)
        assert (again.damping[w], again.dry_friction[w]) == (robot.damping[v], robot.dry_friction[v])


def placements(robot, q):
    """Return the placement of every link in the world, 4 x 4."""
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    links = {f.name: i for i, f in enumerate(robot.model.frames) if f.type == pin.FrameType.BODY}
    return {name: data.oMf[i].homogeneous for name, i in links.items()}


def test_looks_are_the_collision_geometry():
    """Viewers show what touches: the boxes and the capsule, as what URDF has closest to it."""
    shapes = [element.tag for element in ElementTree.fromstring(urdf_of(crane())).iterfind(".//visual/geometry/*")]
    assert sorted(shapes) == ["box", "cylinder"]
