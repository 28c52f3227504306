"""What both Python fixture servers have in common; `../README.md` says what each tool does."""

import os
import socket
import sys

COUNTER = "test://counter"
PEOPLE = ["Ada", "Alan", "Grace"]
LEVELS = "debug info notice warning error critical alert emergency".split()
COLOUR = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}

_TEXT, _NUMBER = {"type": "string"}, {"type": "number"}
_ARGUMENTS = {
    "echo": {"text": _TEXT},
    "slow": {"ms": _NUMBER},
    "progress": {"steps": _NUMBER, "ms": _NUMBER},
    "ask_sampling": {"prompt": _TEXT},
    "ask_elicit": {},
    "wait_cancel": {},
    "was_cancelled": {},
    "hang_up": {},
    "touch": {},
    "log": {"level": _TEXT, "text": _TEXT},
    "meta": {},
}
SCHEMAS = {
    name: {"type": "object", "properties": properties, "required": sorted(properties)}
    for name, properties in _ARGUMENTS.items()
}


class State:
    """What the tools remember between calls."""

    def __init__(self):
        self.touched = 0
        self.cancelled = 0
        self.watched = set()
        self.level = "debug"

    def wants(self, level):
        """Whether the client asked, by `logging/setLevel`, to hear of this level."""
        return LEVELS.index(level) >= LEVELS.index(self.level)


def completions(prefix):
    return [name for name in PEOPLE if name.startswith(prefix)]


async def serve_http(manager):
    """Listens on loopback and says on stderr where, until it is ended."""
    import uvicorn  # Half a second of loading that stdio can do without.

    # One that is started again has to come back to its port.
    listener = socket.create_server(("127.0.0.1", int(os.environ.get("FIXTURE_PORT", "0"))))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(
        manager.handle_request,
        interface="asgi3",
        lifespan="off",
        log_level="warning",
        timeout_graceful_shutdown=1,
    )
    async with manager.run():
        await uvicorn.Server(config).serve(sockets=[listener])
