"""Films of recordings, drawn without a display."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from constrained_sim.exceptions import NoAnswer
from constrained_sim.optional import optional
from constrained_sim.validation import Array
from constrained_sim.viewer.browser import Browser
from constrained_sim.viewer.page import Page
from constrained_sim.viewer.recording_panel import Recording
from constrained_sim.whole_file import written_whole

SUFFIXES = ".mp4", ".gif"
"""Of files that films are written to."""

PATIENCE = 60.0
"""[s] For the browser to open the page: it starts within two on an idle machine."""

FRAME = 160, 180
"""[pixels] By which the window is larger than the picture: its frame, and what the page has beside the scene."""


@dataclass(frozen=True)
class FilmOptions:
    """How a film looks.

    Attributes:
        width: of the picture [pixels].
        height: [pixels].
        rate: pictures per second of the film [Hz].
        speed: simulated seconds per second of the film.
        begin: first instant [s] since the beginning of the recording.
        duration: [s] simulated; 0: to the end.
        follow: let the camera move with the robot's centre of mass.
        cones: show friction cones.
    """

    width: int = 480
    height: int = 360
    rate: float = 25.0
    speed: float = 1.0
    begin: float = 0.0
    duration: float = 0.0
    follow: bool = True
    cones: bool = False

    def instants(self, source: Recording) -> Array:
        """Return the instants [s] of `source` that are shown."""
        begin = source.begin + self.begin
        end = min(begin + self.duration, source.end) if self.duration else source.end
        return np.arange(begin, end, self.speed / self.rate)


def film(source: Recording, path: Path, options: FilmOptions | None = None) -> int:
    """Draw `source` into a film (.mp4, .gif); return its number of pictures.

    Raises:
        ConfigError: it cannot be written.
        MissingLibrary: viser, or the one that writes films.
        MissingProgram: Chromium.
        NoAnswer: the browser draws nothing.
    """
    options = options or FilmOptions()
    imageio = optional("imageio", "films")
    if path.suffix == ".mp4":
        optional("imageio_ffmpeg", "films in MP4")
    if path.suffix == ".gif":
        style: dict[str, Any] = {"loop": 0, "duration": 1e3 / options.rate, "palettesize": 64, "subrectangles": True}
    else:
        style = {"fps": options.rate, "macro_block_size": 2, "quality": 7}
    count = 0
    frames = pictures(source, options)
    first = next(frames)  # what has to do with the page and the browser is no matter of the file
    with written_whole(path) as part, imageio.get_writer(part, **style) as writer:
        for picture in itertools.chain([first], frames):
            writer.append_data(picture)
            count += 1
    return count


def pictures(source: Recording, options: FilmOptions) -> Iterator[Array]:
    """Yield the pictures (height, width, 3) of a film.

    Raises:
        MissingLibrary: viser.
        MissingProgram: Chromium.
        NoAnswer: the browser draws nothing.
    """
    size = options.width + FRAME[0], options.height + FRAME[1]
    with Page(source) as page, Browser(page.url, *size) as _:
        client = _client_of(page)
        page.options.cones, page.follows = options.cones, options.follow
        page.options.com = False
        for t in options.instants(source):
            source.time = float(t)
            page.draw_frame()
            try:
                yield client.get_render(options.height, options.width, timeout=PATIENCE, **page.camera.pose())
            except TimeoutError as error:
                raise NoAnswer(f"the browser drew no picture within {PATIENCE:g} s") from error


def _client_of(page: Page) -> Any:
    """Return the browser that has opened `page`.

    Raises:
        NoAnswer: none has.
    """
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if clients := page.server.get_clients():
            return next(iter(clients.values()))
        time.sleep(0.05)
    raise NoAnswer(f"the browser did not open the page within {PATIENCE:g} s")
