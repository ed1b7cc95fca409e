"""Imported first, lets SIGINT and SIGTERM end a program without ado while Python still imports the rest.

Until a program says what they do, Ctrl-C would end it with a traceback, which looks like a crash.
"""

import os
import signal

for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: os._exit(0))
