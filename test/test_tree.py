"""The compiled recursions over the tree of bodies against Pinocchio's algorithms, for every kind of joint."""

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import solo12

from constrained_sim import Robot
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.dynamics.tree import contract, pose_of, tree_of
from constrained_sim.dynamics.tree_dynamics import bias_forces, find_bodies, inertia, potential_energy
from constrained_sim.dynamics.tree_kinematics import find_axes, move, place, shift_base_to_com
from constrained_sim.linalg.inertia_factor import factor_inertia

JOINTS = (
    pin.JointModelFreeFlyer(),
    pin.JointModelRX(),
    pin.JointModelRY(),
    pin.JointModelRZ(),
    pin.JointModelRevoluteUnaligned(0.6, 0.8, 0.0),
    pin.JointModelRUBX(),
    pin.JointModelRUBY(),
    pin.JointModelRUBZ(),
    pin.JointModelPX(),
    pin.JointModelPrismaticUnaligned(0.6, 0.0, 0.8),
    pin.JointModelSpherical(),
)


def branched_model():
    """Return a tree with each of the joints twice, in two branches, bodies and rotors at random."""
    pin.seed(3)
    model, carrier = pin.Model(), 0
    for k, joint in enumerate(2 * JOINTS):
        carrier = 3 if k == len(JOINTS) else carrier
        carrier = model.addJoint(carrier, joint, pin.SE3.Random(), f"joint {k}")
        model.appendBodyToJoint(carrier, pin.Inertia.Random(), pin.SE3.Random())
    model.armature = np.random.default_rng(3).uniform(0.0, 1.0, model.nv)
    model.gravity = pin.Motion(np.array([1.0, -2.0, -9.0]), np.zeros(3))
    return model


MODELS = {"every joint": branched_model(), "solo12": solo12().model}


@pytest.fixture(params=MODELS)
def model(request):
    """Return one of the models."""
    return MODELS[request.param]


def states(model, count=20):
    """Return random configurations and velocities."""
    rng = np.random.default_rng(4)
    for _ in range(count):
        yield pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv)), 3.0 * rng.normal(size=model.nv)


def placed(model, q):
    """Return the tree and its pose."""
    tree = tree_of(model)
    pose = pose_of(tree)
    place(tree, q, pose)
    find_axes(tree, pose)
    find_bodies(tree, pose)
    return tree, pose


def relative(found, expected):
    """Return the largest difference relative to the largest value."""
    return np.abs(found - expected).max() / np.abs(expected).max()


def test_placements_and_joint_axes(model):
    """They are those of Pinocchio's forward kinematics and its Jacobian in world axes."""
    data = model.createData()
    for q, _ in states(model):
        _, pose = placed(model, q)
        expected = pin.computeJointJacobians(model, data, q)
        frames = np.array([np.vstack([frame.rotation.T, frame.translation]) for frame in data.oMi])
        assert relative(pose.placements, frames) < 1e-14
        assert relative(pose.axes, expected.T) < 1e-14


def test_inertia_weight_and_potential_energy(model):
    """M is that of Pinocchio's composite rigid bodies, the weight its generalised gravity, the energy its potential."""
    data = model.createData()
    for q, _ in states(model):
        tree, pose = placed(model, q)
        M = np.full((model.nv, model.nv), np.nan)
        inertia(tree, pose, M)
        pin.crba(model, data, q)
        upper = np.triu(data.M)
        assert relative(M, upper + np.triu(upper, 1).T) < 1e-14
        assert relative(pose.weight, pin.computeGeneralizedGravity(model, data, q)) < 1e-14
        energy = pin.computePotentialEnergy(model, data, q)
        assert abs(potential_energy(tree, pose.placements) - energy) < 1e-14 * abs(energy)


def test_bias_forces(model):
    """They are Pinocchio's nonlinear effects."""
    data = model.createData()
    for q, v in states(model):
        tree, pose = placed(model, q)
        expected = pin.nonLinearEffects(model, data, q, v)
        scale = np.abs(expected).max()
        assert np.abs(bias_forces(tree, pose, v) - expected).max() < 1e-14 * scale


def test_far_from_the_origin_nothing_is_lost(model):
    """Forces are taken about the base: a thousand kilometres away they are those at home, to the rounding of q."""
    q, v = next(states(model))
    far = q.copy()
    far[:3] += 2.0**20
    at_home, away = (placed(model, where) for where in (q, far))
    forces = [bias_forces(tree, pose, v) for tree, pose in (at_home, away)]
    assert relative(forces[1], forces[0]) < 2.0**20 * 1e-15


@pytest.mark.parametrize("size", [1e-8, 1e-3, 9.9e-3, 1.01e-2, 1.0, 10.0])
def test_move_is_integrate(model, size):
    """Configurations move as Pinocchio integrates them, small steps and turns by more than a circle."""
    tree, rng = tree_of(model), np.random.default_rng(5)
    for q, _ in states(model):
        step, end = size * rng.normal(size=model.nv), np.full(model.nq, np.nan)
        expected = pin.integrate(model, q, step)
        move(tree, q, 0.5, 2.0 * step, end)
        assert np.abs(end - expected).max() < 2e-15 * np.abs(expected).max()


def test_what_a_free_flyer_carries_is_moved_as_a_whole(model):
    """Its centre of mass is where it should be afterwards, q and placements agree, and nothing else has moved."""
    data, robot, joint = model.createData(), Robot(model, ()), 1
    for q, _ in states(model):
        tree, pose = placed(model, q)
        com, changed = np.array([0.3, -0.2, 0.9]), q.copy()
        shift_base_to_com(tree, changed, pose.placements, robot.support, joint, com)
        pin.centerOfMass(model, data, changed)
        assert np.abs(data.oMi[joint].act(data.com[joint]) - com).max() < 1e-13
        assert np.abs(pose.placements - placed(model, changed)[1].placements).max() < 1e-13
        first = model.idx_qs[joint]
        assert np.array_equal(np.delete(changed, range(first, first + 3)), np.delete(q, range(first, first + 3)))
        assert np.abs(changed - Dynamics(robot).with_com_at(q, np.array([joint]), com[None])).max() < 1e-13


def test_robots_with_other_joints_have_no_tree():
    """A planar joint is none of those that the recursions know: its robot is simulated the general way."""
    pin.seed(1)
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelPlanar(), pin.SE3.Identity(), "plane")
    model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
    assert tree_of(model) is None
    assert Robot(model, ("plane",)).tree is None


@pytest.mark.parametrize("left_out", [[], [0], [3, 4, 7], [0, 1, 2, 3, 4, 5, 11, 12]])
def test_what_is_left_of_a_tree_is_a_tree(model, left_out):
    """Without some degrees of freedom the inertia of the others factors along their nearest ancestors."""
    tree = tree_of(model)
    kept, parents = contract(tree.rows, np.array(left_out, dtype=np.int64))
    assert sorted([*kept, *left_out]) == list(range(model.nv))
    M = np.empty((model.nv, model.nv))
    q, _ = next(states(model))
    tree, pose = placed(model, q)
    inertia(tree, pose, M)
    L = factor_inertia(M[np.ix_(kept, kept)], parents)
    assert relative(L.T @ L, M[np.ix_(kept, kept)]) < 1e-14
