"""Rigid-body dynamics and kinematics of one configuration and velocity."""
