"""What the Python drivers share: the environment that they are run with, the deadline, the last line.

A driver says how its library is used (`ask`: start the server, have the scripted model call `slow_probe`, return what the
model said or the caller got); `run` does the rest. The names of the drivers have a hyphen because a file `langchain.py`
would be imported in place of the library.
"""

import asyncio
import json
import os
import threading
import time

PROMPT = "Run the slow probe and tell me its result."
MODEL = "scripted-model"
# What `slow_probe` answers. Any other text that the model gets is an error in words.
DONE = "42 files built"
MAX_TEXT = 2000

_started = time.monotonic()
_said = threading.Lock()


def server():
    """The server to start: `command`, `args` and `env`."""
    return json.loads(os.environ["CLIENT_SERVER"])


def model_url(path=""):
    return os.environ["CLIENT_MODEL"] + path


def limit(**settings):
    """The client's own limit in seconds, under the name of its setting, if the run is to write one."""
    ms = os.environ.get("CLIENT_LIMIT_MS")
    return {name: kind(int(ms) / 1000) for name, kind in settings.items()} if ms else {}


def run(ask):
    """Runs `ask` (a coroutine function) once and prints what came of it."""
    _settle_in(os.environ["CLIENT_HOME"])
    timer = threading.Timer(float(os.environ["CLIENT_DEADLINE"]), lambda: _finish("deadline", ""))
    timer.daemon = True
    timer.start()
    try:
        text = asyncio.run(ask())
    except BaseException as error:  # a cancel or an exit that escapes from the library is a result, too
        _finish("error", _words(error))
    _finish(_outcome(text), text)


def _settle_in(home):
    names = {"HOME": "", "XDG_CONFIG_HOME": ".config", "XDG_CACHE_HOME": ".cache", "XDG_DATA_HOME": ".local/share"}
    for name, folder in names.items():
        os.environ[name] = os.path.join(home, folder)
    os.chdir(home)


def _outcome(text):
    if text.startswith("NO TOOL"):
        return "no-tools"
    return "result" if DONE in text else "error"


def _words(error):
    """The exception, and those inside it: task groups hide what happened in groups."""
    words = f"{type(error).__name__}: {error}"
    inside = getattr(error, "exceptions", ())
    return "; ".join([words, *map(_words, inside)])


def _finish(outcome, text):
    """Ends the process at once: the library's threads and its server's pipes end with it."""
    with _said:
        seconds = round(time.monotonic() - _started, 3)
        print(json.dumps({"outcome": outcome, "text": text[:MAX_TEXT], "seconds": seconds}), flush=True)
        os._exit(0)
