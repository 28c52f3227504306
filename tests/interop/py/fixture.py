"""What both Python fixture servers have in common; `../README.md` says what each tool does."""

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
