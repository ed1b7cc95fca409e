"""Films of recordings, drawn without a display."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from constrained_sim.exceptions import InvalidValue, NoAnswer
from constrained_sim.optional import optional
from constrained_sim.validation import Array, number, whole_number
from constrained_sim.viewer.browser import Browser
from constrained_sim.viewer.camera import AZIMUTH, ELEVATION
from constrained_sim.viewer.page import Page
from constrained_sim.viewer.recording_panel import Recording
from constrained_sim.whole_file import written_whole

SUFFIXES = ".mp4", ".gif"
"""Of files that films are written to."""

PATIENCE = 60.0
"""[s] For the browser to open the page: it starts within two on an idle machine."""

LARGEST, STEEPEST = 8192, 89.0
"""Edge of a picture [pixels]; angle at which the camera looks down [deg]: from straight above nothing is upright."""

FASTEST_GIF = 50.0
"""[Hz] Two hundredths of a second for a picture: browsers show one of less for ten."""

GIF_STYLE = {"palettesize": 64, "subrectangles": True}

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
        azimuth: of the camera about the vertical, from the world's x axis [deg].
        elevation: of the camera above what it looks at [deg], -89 to 89.
        zoom: how many times larger than otherwise the robot is.

    Raises:
        InvalidValue: a value that is not finite, or outside these ranges.
    """

    width: int = 480
    height: int = 360
    rate: float = 25.0
    speed: float = 1.0
    begin: float = 0.0
    duration: float = 0.0
    follow: bool = True
    cones: bool = False
    azimuth: float = AZIMUTH
    elevation: float = ELEVATION
    zoom: float = 1.0

    def __post_init__(self) -> None:
        """Check all values."""
        for name in ("width", "height"):
            whole_number(f"{name} of a film [pixels]", getattr(self, name), 1, LARGEST)
        for name in ("rate", "speed", "zoom"):
            number(f"{name} of a film", getattr(self, name), 0.0, open_lower=True)
        for name in ("begin", "duration"):
            number(f"{name} of a film [s]", getattr(self, name), 0.0)
        number("azimuth of a film [deg]", self.azimuth)
        number("elevation of a film [deg]", self.elevation, -STEEPEST, STEEPEST)

    def instants(self, source: Recording) -> Array:
        """Return the instants [s] of `source` that are shown, one at least.

        Raises:
            InvalidValue: the film would begin after the end.
        """
        length = source.end - source.begin
        if self.begin > length:
            raise InvalidValue("begin of a film [s]", self.begin, f"at most {length:.9g}, the length of the recording")
        begin = source.begin + self.begin
        end = min(begin + self.duration, source.end) if self.duration else source.end
        return np.arange(begin, max(end, np.nextafter(begin, np.inf)), self.speed / self.rate)


def film(
    source: Recording,
    path: Path,
    options: FilmOptions | None = None,
    report: Callable[[int, int], None] = lambda done, count: None,
) -> int:
    """Draw `source` into a film (.mp4, .gif); return its number of pictures, and `report` how many of them are done.

    Raises:
        InvalidValue: no instant of it is shown, or too many pictures per second for a GIF.
        ConfigError: it cannot be written.
        MissingLibrary: viser, or the one that writes films.
        MissingProgram: Chromium.
        NoAnswer: the browser draws nothing.
    """
    options = options or FilmOptions()
    count = len(options.instants(source))
    imageio = optional("imageio", "films")
    if path.suffix == ".mp4":
        optional("imageio_ffmpeg", "films in MP4")
    if path.suffix == ".gif":
        style: dict[str, Any] = {"loop": 0, "duration": gif_delays(count, options.rate), **GIF_STYLE}
    else:
        style = {"fps": options.rate, "macro_block_size": 2, "quality": 7}
    frames = pictures(source, options)
    first = next(frames)  # what has to do with the page and the browser is no matter of the file
    with written_whole(path) as part, imageio.get_writer(part, **style) as writer:
        for done, picture in enumerate(itertools.chain([first], frames), 1):
            writer.append_data(picture)
            report(done, count)
    return count


def gif_delays(count: int, rate: float) -> list[int]:
    """Return how long each of `count` pictures of a GIF is shown [ms], so that there are `rate` of them per second.

    A GIF counts in hundredths of a second.

    Raises:
        InvalidValue: more pictures per second than browsers show.
    """
    if rate > FASTEST_GIF:
        raise InvalidValue("rate of a GIF [Hz]", rate, f"at most {FASTEST_GIF:g}: browsers show no picture for less")
    return [10 * int(step) for step in np.diff(np.round(100.0 / rate * np.arange(count + 1)))]


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
        page.camera.look_from(options.azimuth, options.elevation, options.zoom)

        def drawn_at(t: float) -> Array:
            source.time = t
            page.draw_frame()
            try:
                picture = client.get_render(options.height, options.width, timeout=PATIENCE, **page.camera.pose())
            except TimeoutError as error:
                raise NoAnswer(f"the browser drew no picture within {PATIENCE:g} s") from error
            return np.asarray(picture)

        instants = options.instants(source).tolist()
        drawn_at(instants[0])  # in the first picture of a page what can be clicked has a halo
        yield from map(drawn_at, instants)


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
