"""The page: a server on the loopback interface that shows the frames of one source."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import threading
import time
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from constrained_sim.optional import optional
from constrained_sim.palette import STATUS_COLOURS
from constrained_sim.validation import whole_number
from constrained_sim.viewer.camera import Camera
from constrained_sim.viewer.force_drawing import ForceDrawing, ForceOptions
from constrained_sim.viewer.frame import PICTURE_PERIOD, Frame
from constrained_sim.viewer.robot_drawing import WORLD, ObjectDrawings, RobotDrawing, draw_scene
from constrained_sim.viewer.signals import Signals
from constrained_sim.viewer.source import Source

IDLE_PERIOD = 0.25
"""[s] Between two looks at the source while nobody looks at the page."""

PLOTS_EVERY = 6
"""Pictures between two updates of the plots, which are larger."""

HINT = "Click a contact or an anchor to read its force."

LOOPBACK, PORT, LAST_PORT = "127.0.0.1", 8080, 65535


class Page:
    """Draws a source; a context manager that ends with its server.

    Attributes:
        url: where the page is.
        server: the `viser.ViserServer`, for what else users want to draw, below the frame ``/world``.
        options: what is drawn of forces.
        camera: where a new visitor looks from.
        follows: whether the robot stays where it is in the picture, and the world moves: the browser's camera is the
            visitor's own.
    """

    def __init__(self, source: Source, port: int = PORT, title: str = "constrained_sim") -> None:
        """Serve `source` at `port` of the loopback interface, or the next one that is free.

        Raises:
            InvalidValue: no port.
            MissingLibrary: viser.
        """
        port = whole_number("port", port, 1, LAST_PORT)
        viser = optional("viser", "the viewer")
        self.source = source
        logging.getLogger("websockets").setLevel(logging.CRITICAL)  # who leaves amidst a greeting is no error
        with contextlib.redirect_stdout(io.StringIO()):  # we say ourselves where the page is
            self.server: Any = viser.ViserServer(host=LOOPBACK, port=port, label=title, verbose=False)
        self._closed = threading.Event()
        self.url = f"http://{LOOPBACK}:{self.server.get_port()}"
        self._frame: Frame | None = None
        self._drawn = ForceOptions()
        self._thread: threading.Thread | None = None
        self._pictures = 0
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
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        self.source.close()
        with contextlib.redirect_stdout(io.StringIO()):
            self.server.stop()

    def serve_in_background(self) -> Page:
        """Draw in a thread of its own until :meth:`close`; return the page."""
        self._thread = threading.Thread(target=self.serve, name="viewer", daemon=True)
        self._thread.start()
        return self

    def __repr__(self) -> str:
        """Say where the page is."""
        return f"Page({self.url!r})"

    def _repr_html_(self) -> str:
        """Return the page as a notebook shows it."""
        return f'<iframe src="{self.url}" width="100%" height="600" style="border:0"></iframe>'

    def open(self) -> None:
        """Open the page in the user's browser; not in one of text, which would take the terminal."""
        if sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
            webbrowser.open(self.url)

    def serve(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Draw until `goes_on` says no, or :meth:`close` is called."""
        while goes_on() and not self._closed.is_set():
            begin = time.monotonic()
            self.draw()
            period = PICTURE_PERIOD if self.server.get_clients() else IDLE_PERIOD
            time.sleep(max(0.0, begin + period - time.monotonic()))

    def draw(self) -> None:
        """Move time on, and draw the present frame of the source if there is a new one."""
        self._controls.update()
        self.draw_frame()

    def draw_frame(self) -> None:
        """Draw the present frame of the source if there is a new one, or another wish what to draw of it."""
        frame = self.source.frame()
        if frame is None:
            return
        if frame is self._frame and self.options == self._drawn:
            self._signals.finish()
            return
        self._frame, self._drawn = frame, replace(self.options)
        with self.server.atomic():
            self._robot.update(frame.q)
            self._objects.update(frame.objects)
            self._forces.update(frame)
            if self.follows:
                self._world.position = -self.camera.travelled(frame.q)
        self._say(frame)
        self._signals.add(frame)
        self._pictures += 1
        if self._pictures % PLOTS_EVERY == 1:
            self._signals.draw()

    def _set_up_scene(self) -> None:
        world, scene = self.source.world, self.server.scene
        self._world = scene.add_frame(WORLD, show_axes=False)
        draw_scene(scene, world)
        self._robot, self._objects = RobotDrawing(scene, world.robot), ObjectDrawings(scene)
        self._forces = ForceDrawing(scene, world.robot)
        self.options: ForceOptions = self._forces.options
        frame = self.source.frame()
        q = world.robot.neutral() if frame is None else frame.q
        self._robot.update(q)
        self.camera, self.follows = Camera(world.robot, q), world.robot.floating_base
        self.server.initial_camera.position = self.camera.position
        self.server.initial_camera.look_at = self.camera.look_at
        self.server.gui.configure_theme(show_logo=False, show_share_button=False)

    def _set_up_controls(self) -> None:
        gui = self.server.gui
        self._text = gui.add_markdown("waiting for the first state ...")
        self._read_out = gui.add_markdown(HINT)
        self._controls = self.source.add_controls(self.server)
        with gui.add_folder("Forces"):
            self._add_force_options(gui)
        panel = gui.add_panel()
        with panel.add_tab("Signals"):
            self._signals = Signals(gui, self.source)
        gui.main_panel.dock_right()
        panel.dock_below(gui.main_panel)

    def _add_force_options(self, gui: Any) -> None:
        options = self.options
        scale = gui.add_slider("arrow of the weight [m]", 0.05, 3.0, 0.05, options.arrow_weight)
        scale.on_update(lambda _: setattr(options, "arrow_weight", float(scale.value)))
        self._scale = gui.add_markdown("")
        labels = {
            "cones": "friction cones",
            "com": "centre of mass, support",
            "anchors": "anchors of loops",
            "impacts": "impacts",
        }
        for name, label in labels.items():
            box = gui.add_checkbox(label, getattr(options, name))
            box.on_update(lambda _, name=name, box=box: setattr(options, name, box.value))
        follow = gui.add_checkbox("camera follows", self.follows)
        follow.on_update(lambda _: setattr(self, "follows", follow.value))
        names = {status.name.lower(): colour for status, colour in STATUS_COLOURS.items()}
        gui.add_html(" ".join(f'<span style="color:{c};padding:0 .6em">&#9679; {n}</span>' for n, c in names.items()))

    def _say(self, frame: Frame) -> None:
        """Write the time, the state of the simulation, the scale, and the force that a user has chosen."""
        self._text.content = f"**t = {frame.t:.3f} s**  {frame.text}"  # sent where it differs
        self._scale.content = f"An arrow of 1 m is {self._forces.newtons_per_metre:.4g} N."
        chosen = frame.find(self.options.chosen)
        self._read_out.content = HINT if chosen is None else chosen.text
