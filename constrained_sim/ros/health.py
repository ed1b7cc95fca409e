"""Health of the simulation, as the status message and as diagnostics."""

from __future__ import annotations

from dataclasses import dataclass

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from std_msgs.msg import Header

from constrained_sim import msg
from constrained_sim.dynamics.dynamics import potential_energy
from constrained_sim.ros.conversions import to_time
from constrained_sim.ros.world import Residuals, World
from constrained_sim.simulator import Simulator


@dataclass
class Counters:
    """What is counted since the last reset, in fields that the message has too.

    Attributes:
        commands_dropped: commands whose stamp belonged to another state.
        commands_refused: commands and wrenches with something wrong in them.
        late_periods: periods of realtime mode that fell behind the wall clock, further than the one before.
        records_lost: messages that could not be recorded.
    """

    commands_dropped: int = 0
    commands_refused: int = 0
    late_periods: int = 0
    records_lost: int = 0


@dataclass(frozen=True)
class Health:
    """What the loop of the node knows.

    Attributes:
        node: its full name, as ``/left/constrained_sim``.
        state: one of SimulationStatus.
        text: what happened last.
        real_time_factor: simulated over wall-clock time.
        problem: what keeps messages from being recorded.
        warning: what else the user should know.
    """

    node: str
    state: int
    text: str
    real_time_factor: float
    problem: str = ""
    warning: str = ""


def status_message(world: World, health: Health, counters: Counters, actuated: list[str]) -> msg.SimulationStatus:
    """Return the status; residuals start anew."""
    sim, residuals = world.sim, world.residuals
    rows, rank = sim.active_rows()
    position_error, velocity_error = sim.largest_violation()
    contact = world.last.outcome.motion.contact if world.last is not None else None
    world.residuals = Residuals()
    return msg.SimulationStatus(
        header=_header(world),
        state=health.state,
        message=health.text,
        step=sim.steps,
        time=sim.steps * sim.dt,
        dt=sim.dt,
        real_time_factor=health.real_time_factor,
        clock_mode=world.config.node.clock_mode,
        solver=sim.solver.name,
        stepper=sim.stepper_name,
        integrator=sim.integrator_name,
        contact_method=contact.method if contact is not None else sim.contact_method,
        contact_iterations=contact.iterations if contact is not None else 0,
        rows=rows,
        rank=rank,
        dynamics_residual=residuals.dynamics,
        constraint_residual=residuals.constraint,
        complementarity_residual=residuals.complementarity,
        position_error=max(position_error, residuals.position),
        velocity_error=max(velocity_error, residuals.velocity),
        early_impacts=sim.early_impacts,
        solver_calls=sim.solver.calls,
        actuated_joints=actuated,
        command_modes=[command.mode for command in world.commands],
        **_energy_fields(sim),
        **vars(counters),
    )


def _energy_fields(sim: Simulator) -> dict[str, float]:
    """Return the energies, and the terms of the audit [J], by their fields in the message."""
    terms = sim.energy
    return {
        "kinetic_energy": sim.kinetic_energy(),
        "potential_energy": potential_energy(sim.robot, sim.state.q),
        "work_actuators": terms.actuators,
        "work_external": terms.external,
        "work_contacts": terms.contacts,
        "work_constraints": terms.constraints,
        "work_damping": terms.damping,
        "impact_losses": terms.impact_losses,
        "projection_energy": terms.projection,
        "integration_energy": sim.integration_energy(),
        "energy_residual": terms.residual,
    }


def diagnostics_message(world: World, health: Health, counters: Counters) -> DiagnosticArray:
    """Return how the simulation is doing, for the ROS diagnostics tools."""
    states, steps = msg.SimulationStatus, world.sim.steps
    troubles = [health.problem, health.warning]
    unhappy = health.state == states.WAITING or world.command_is_overdue or any(troubles)
    level = DiagnosticStatus.WARN if unhappy else DiagnosticStatus.OK
    values = {
        "step": steps,
        "simulated time [s]": steps * world.sim.dt,
        "real-time factor": health.real_time_factor,
        "late periods": counters.late_periods,
        "commands dropped": counters.commands_dropped,
        "commands refused": counters.commands_refused,
        "records lost": counters.records_lost,
    }
    status = DiagnosticStatus(
        level=DiagnosticStatus.ERROR if health.state == states.FROZEN or counters.records_lost else level,
        name=f"{health.node}: simulation",
        message="; ".join(dict.fromkeys(filter(None, [*troubles, health.text]))) or "running",
        hardware_id=world.config.robot.model.name,
        values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
    )
    return DiagnosticArray(header=_header(world), status=[status])


def _header(world: World) -> Header:
    return Header(stamp=to_time(world.stamp), frame_id=world.config.node.world_frame)
