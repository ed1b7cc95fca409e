"""The page: a server on the loopback interface that shows the frames of one source."""

from __future__ import annotations

import time
import webbrowser
from collections.abc import Callable
from typing import Any

import numpy as np

from constrained_sim.optional import optional
from constrained_sim.viewer.force_drawing import STATUS_COLOURS, ForceDrawing, size_of
from constrained_sim.viewer.frame import Frame
from constrained_sim.viewer.robot_drawing import RobotDrawing, draw_scene
from constrained_sim.viewer.signals import Signals
from constrained_sim.viewer.source import Source

PERIOD = 1.0 / 30.0
"""[s] Between pictures."""

PLOTS_EVERY = 6
"""Pictures between two updates of the plots, which are larger."""

LOOPBACK, PORT = "127.0.0.1", 8080


class Page:
    """Draws a source; a context manager that ends with its server.

    Attributes:
        url: where the page is.
    """

    def __init__(self, source: Source, port: int = PORT, title: str = "constrained_sim") -> None:
        """Serve `source` at `port` of the loopback interface, or the next one that is free.

        Raises:
            MissingLibrary: viser.
        """
        viser = optional("viser", "the viewer")
        self.source = source
        self.server: Any = viser.ViserServer(host=LOOPBACK, port=port, label=title, verbose=False)
        self.url = f"http://{LOOPBACK}:{self.server.get_port()}"
        self._frame: Frame | None = None
        self._pictures, self._chosen = 0, ""
        self._set_up_scene()
        self._set_up_controls()

    def __enter__(self) -> Page:
        """Return the page."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the server and the source."""
        self.close()

    def close(self) -> None:
        """End the server and the source."""
        self.source.close()
        self.server.stop()

    def open(self) -> None:
        """Open the page in the user's browser."""
        webbrowser.open(self.url)

    def serve(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Draw until `goes_on` says no."""
        while goes_on():
            begin = time.monotonic()
            self.draw()
            time.sleep(max(0.0, begin + PERIOD - time.monotonic()))

    def draw(self) -> None:
        """Draw the present frame of the source, if there is a new one."""
        self._controls.update()
        frame = self.source.frame()
        if frame is None or frame is self._frame:
            return
        self._frame = frame
        with self.server.atomic():
            self._robot.update(frame.q)
            self._forces.update(frame)
        self._signals.add(frame)
        self._pictures += 1
        if self._pictures % PLOTS_EVERY == 1:
            self._signals.draw()
            self._say(frame)

    def _set_up_scene(self) -> None:
        world, scene = self.source.world, self.server.scene
        size = size_of(world.robot)
        draw_scene(scene, world)
        self._robot = RobotDrawing(scene, world.robot)
        self._forces = ForceDrawing(scene, world.robot, self._choose)
        frame = self.source.frame()
        if frame is not None:
            self._robot.update(frame.q)
        look_at = np.array([0.0, 0.0, 0.45 * size])
        self.server.initial_camera.position = look_at + size * np.array([1.3, -1.6, 0.55])
        self.server.initial_camera.look_at = look_at
        self.server.gui.configure_theme(show_logo=False, show_share_button=False)

    def _set_up_controls(self) -> None:
        gui = self.server.gui
        self._text = gui.add_markdown("waiting for the first state ...")
        self._controls = self.source.add_controls(self.server)
        with gui.add_folder("Forces"):
            self._add_force_options(gui)
            self._contact = gui.add_markdown("Click a contact to read its force.")
        panel = gui.add_panel()
        with panel.add_tab("Signals"):
            self._signals = Signals(gui, self.source.world.robot)
        gui.main_panel.dock_right()
        panel.dock_below(gui.main_panel)

    def _add_force_options(self, gui: Any) -> None:
        options = self._forces.options
        scale = gui.add_slider("arrow of the weight [m]", 0.05, 3.0, 0.05, options.arrow_weight)
        scale.on_update(lambda _: setattr(options, "arrow_weight", float(scale.value)))
        labels = {"cones": "friction cones", "com": "centre of mass, support", "anchors": "anchors of loops"}
        for name, label in labels.items():
            box = gui.add_checkbox(label, getattr(options, name))
            box.on_update(lambda _, name=name, box=box: setattr(options, name, box.value))
        names = {status.name.lower(): "#%02x%02x%02x" % colour for status, colour in STATUS_COLOURS.items()}
        gui.add_html(" ".join(f'<span style="color:{c};padding:0 .6em">&#9679; {n}</span>' for n, c in names.items()))

    def _choose(self, name: str) -> None:
        """Show the force of contact `name` from now on."""
        self._chosen = name
        if self._frame is not None:
            self._say(self._frame)

    def _say(self, frame: Frame) -> None:
        """Write the time, the state of the simulation and the chosen contact."""
        self._text.content = f"**t = {frame.t:.3f} s**  {frame.text}"
        for contact in frame.contacts:
            if contact.name == self._chosen:
                x, y, z = contact.force
                self._contact.content = (
                    f"**{contact.name}**: {contact.status.name.lower()}, force ({x:.2f}, {y:.2f}, {z:.2f}) N, "
                    f"normal {contact.normal_force:.2f} N"
                )
