"""What a Python client of the interop tests does once it is connected: the named checks.

Both lines of the official Python SDK run exactly these; each brings a small adapter
(`client1.py`, `client2.py`) that says how its SDK calls a tool, subscribes, and so on. The
adapters hand over plain JSON values, because the two lines spell their models differently.
`../README.md` lists the checks and the tools of the fixture servers.

A detail is the same on every run of the same pair, so that the runner can compare the direct run
with the one through outlast word for word.
"""

import hashlib
import http.client
import json
import re
import os
import sys
import warnings
from argparse import ArgumentParser
from urllib.parse import urlsplit

import anyio

CHECK_LIMIT = 15
COUNTER = "test://counter"
TAG = "example.org/tag"
MODERN_VERSION = "io.modelcontextprotocol/protocolVersion"
MODERN_LOG_LEVEL = "io.modelcontextprotocol/logLevel"
TOOLS = sorted(
    "ask_elicit ask_sampling echo hang_up log meta progress slow touch wait_cancel was_cancelled".split()
)
UNICODE = 'żółć 漢字 🦀 "quoted" \\ tab\t newline\n \u2028\u2029 \u0000 \ufeff end'
LARGE = "x0123456789abcde" * (1 << 16)

# The SDK 2.x calls half of the legacy era deprecated, which is what we are here to use.
warnings.simplefilter("ignore")

spawned = []
_open_process = anyio.open_process


async def _remember_process(*args, **kwargs):
    process = await _open_process(*args, **kwargs)
    spawned.append(process.pid)
    return process


# The SDK does not tell which process it started, and `close` has to know.
anyio.open_process = _remember_process


def sampled(prompt):
    """What the client answers when a server samples."""
    return f"sampled: {prompt}"


def elicited(schema):
    """What the client answers when a server elicits."""
    return {"colour": "teal"} if "colour" in schema["properties"] else {"name": "teal"}


class Unsupported(Exception):
    """One of the two SDKs lacks the feature."""


def same(actual, wanted):
    if actual != wanted:
        raise AssertionError(f"got {str(actual)[:200]}, wanted {str(wanted)[:200]}")


def text(result):
    assert not result.get("isError"), f"the tool answered with an error: {result['content']}"
    return "\n".join(part["text"] for part in result["content"])


def digest(value):
    data = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False


async def until(probe, what, seconds=4):
    with anyio.move_on_after(seconds):
        while not await probe():
            await anyio.sleep(0.02)
        return
    raise AssertionError(f"{what}: not within {seconds} s")


async def call_fails(peer):
    try:
        result = await peer.call("no_such_tool", {})
    except peer.ProtocolError as error:
        return f"error {error.error.code}"
    assert result.get("isError"), "an unknown tool was answered as if it existed"
    return "answered with isError"


async def progress_arrives(peer, tool, args):
    seen = []
    text(await peer.call(tool, args, progress=seen.append))
    assert all(a < b for a, b in zip(seen, seen[1:])), f"progress went {seen}"
    # Reports that travel together with the answer are lost in some SDKs, so the last may be missing.
    same(seen[:4], [1, 2, 3, 4])
    return "from 1 on, increasing"


async def at_once(peer, name, arguments):
    answers = [None] * len(arguments)

    async def one(index):
        answers[index] = text(await peer.call(name, arguments[index]))

    async with anyio.create_task_group() as group:
        for index in range(len(arguments)):
            group.start_soon(one, index)
    return answers


class Fixture:
    """The checks against one of our own fixture servers, in the order they are reported."""

    async def lists(peer):
        lists = await peer.lists()
        same(sorted(tool["name"] for tool in lists["tools"]), TOOLS)
        same([resource["uri"] for resource in lists["resources"]], [COUNTER])
        same([prompt["name"] for prompt in lists["prompts"]], ["greet"])
        return digest(lists)

    async def echo(peer):
        same(text(await peer.call("echo", {"text": "hello"})), "hello")
        return "5 characters"

    async def request_meta(peer):
        seen = json.loads(text(await peer.call("meta", {}, meta={TAG: "t-1"})))
        same(seen[TAG], "t-1")
        if peer.era == "modern":
            same(seen[MODERN_VERSION], peer.version)
        return digest(seen)

    async def progress(peer):
        return await progress_arrives(peer, "progress", {"steps": 12, "ms": 40})

    async def cancel(peer):
        async def count():
            return int(text(await peer.call("was_cancelled", {})))

        before = await count()
        await peer.call_and_cancel("wait_cancel", {}, after=0.2)

        async def noticed():
            return await count() == before + 1

        await until(noticed, "the server noticed the cancel")
        return "the server noticed"

    async def sampling(peer):
        same(text(await peer.call("ask_sampling", {"prompt": "p-17"})), "sampled: p-17")
        return "sampled: p-17"

    async def elicitation(peer):
        # A modern server cannot send requests: it answers `input_required` with a state that has
        # to come back unchanged.
        answer = text(await peer.call("ask_elicit", {}))
        assert answer.startswith("accept teal"), answer
        assert peer.era == "legacy" or answer.endswith("state-42"), answer
        return answer

    async def read_resource(peer):
        content = (await peer.read_resource(COUNTER))["contents"][0]
        same(content["uri"], COUNTER)
        assert content["text"].isdecimal(), content["text"]
        return content["mimeType"]

    async def subscription(peer):
        async with peer.watch(COUNTER) as next_update:
            await peer.call("touch", {})
            with anyio.fail_after(4):
                same(await next_update(), COUNTER)
        return "subscriptions/listen" if peer.era == "modern" else "resources/subscribe"

    async def resume(peer):
        # Over HTTP the stream breaks off in mid-call, and the client has to come back for the answer.
        return text(await peer.call("hang_up", {}))

    async def prompt(peer):
        result = await peer.get_prompt("greet", {"name": "Ada"})
        same(result["messages"][0]["content"]["text"], "Hello, Ada!")
        return "Hello, Ada!"

    async def completion(peer):
        values = await peer.complete_prompt("greet", "name", "A")
        same(values, ["Ada", "Alan"])
        return " ".join(values)

    async def logging(peer):
        meta = None
        if peer.era == "modern":
            meta = {MODERN_LOG_LEVEL: "warning"}
            await peer.call("log", {"level": "error", "text": "not asked for"})
        else:
            await peer.set_level("warning")
        await peer.call("log", {"level": "info", "text": "quiet"}, meta=meta)
        await peer.call("log", {"level": "error", "text": "loud"}, meta=meta)

        async def heard():
            return len(peer.logged) > 0

        await until(heard, "a log message")
        same(peer.logged, [("error", "loud")])
        return "error: loud"

    async def unknown_tool(peer):
        return await call_fails(peer)

    async def concurrent(peer):
        # The first asked is the last to be answered.
        waits = [240 - 12 * i for i in range(20)]
        answers = await at_once(peer, "slow", [{"ms": ms} for ms in waits])
        same(answers, [f"slept {ms}" for ms in waits])
        return f"{len(answers)} answers"

    async def unicode(peer):
        same(text(await peer.call("echo", {"text": UNICODE})), UNICODE)
        return f"{len(UNICODE)} characters"

    async def large(peer):
        same(text(await peer.call("echo", {"text": LARGE})), LARGE)
        return f"{len(LARGE)} characters"


class Everything:
    """The same against `@modelcontextprotocol/server-everything`, whose tools have other names."""

    async def lists(peer):
        lists = await peer.lists()
        names = {tool["name"] for tool in lists["tools"]}
        wanted = {"echo", "get-env", "trigger-sampling-request", "trigger-elicitation-request"}
        assert wanted <= names, f"tools missing: {wanted - names}"
        assert any(prompt["name"] == "args-prompt" for prompt in lists["prompts"])
        assert lists["resources"], "no resources"
        return digest(lists)

    async def echo(peer):
        same(text(await peer.call("echo", {"message": "hello"})), "Echo: hello")
        return "5 characters"

    async def environment(peer):
        # The server sees the same environment with and without outlast.
        return digest(json.loads(text(await peer.call("get-env", {}))))

    async def progress(peer):
        args = {"duration": 1, "steps": 10}
        return await progress_arrives(peer, "trigger-long-running-operation", args)

    async def cancel(peer):
        # This server tells nobody that it was cancelled; what is left is that the client is freed.
        args = {"duration": 1.5, "steps": 3}
        with anyio.fail_after(1.2):
            await peer.call_and_cancel("trigger-long-running-operation", args, after=0.2)
        return "the client was freed"

    async def sampling(peer):
        args = {"prompt": "p-17", "maxTokens": 10}
        answer = text(await peer.call("trigger-sampling-request", args))
        assert "sampled: " in answer and "p-17" in answer, answer
        return digest(answer)

    async def elicitation(peer):
        answer = text(await peer.call("trigger-elicitation-request", {}))
        assert "- Name: teal" in answer, answer
        return digest(answer)

    async def read_resource(peer):
        content = (await peer.read_resource("demo://resource/dynamic/text/1"))["contents"][0]
        assert "Resource 1" in content["text"], content["text"]
        return content["mimeType"]

    async def subscription(peer):
        uri = "demo://resource/dynamic/text/1"
        async with peer.watch(uri) as next_update:
            await peer.call("toggle-subscriber-updates", {})
            with anyio.fail_after(4):
                same(await next_update(), uri)
            await peer.call("toggle-subscriber-updates", {})
        return "resources/subscribe"

    async def prompt(peer):
        result = await peer.get_prompt("args-prompt", {"city": "Oslo"})
        same(result["messages"][0]["content"]["text"], "What's weather in Oslo?")
        return "What's weather in Oslo?"

    async def completion(peer):
        values = await peer.complete_prompt("completable-prompt", "department", "S")
        same(values, ["Sales", "Support"])
        return " ".join(values)

    async def logging(peer):
        await peer.set_level("debug")
        await peer.call("toggle-simulated-logging", {})

        async def heard():
            return any("message" in str(data) for _, data in peer.logged)

        await until(heard, "a log message")
        await peer.call("toggle-simulated-logging", {})
        return "a message of a random level"

    async def unknown_tool(peer):
        return await call_fails(peer)

    async def concurrent(peer):
        words = [f"word-{i}" for i in range(20)]
        answers = await at_once(peer, "echo", [{"message": word} for word in words])
        same(answers, [f"Echo: {word}" for word in words])
        return f"{len(answers)} answers"

    async def unicode(peer):
        same(text(await peer.call("echo", {"message": UNICODE})), f"Echo: {UNICODE}")
        return f"{len(UNICODE)} characters"

    async def large(peer):
        same(text(await peer.call("echo", {"message": LARGE})), f"Echo: {LARGE}")
        return f"{len(LARGE)} characters"


PROFILES = {
    name: {check: body for check, body in vars(profile).items() if not check.startswith("_")}
    for name, profile in [("fixture", Fixture), ("everything", Everything)]
}


async def progress_resets_timeout(peer):
    raise Unsupported("progress does not extend a timeout of the Python SDK")


async def held(peer, seconds):
    """Only through outlast: a call that waits for a person's yes, of a client with two seconds of patience.

    Progress does not extend that here, so outlast hands the call off in time, and the client asks for it.
    """
    began, asked = anyio.current_time(), 0
    result = await peer.call_within(2, "slow", {"ms": 1})
    while ticket := (result.get("_meta") or {}).get("dev.outlast/ticket"):
        asked += 1
        wait = re.search(r"Call the tool `([^`]+)`", text(result)).group(1)
        result = await peer.call_within(2, wait, {"ticket": ticket, "after": asked})
    same(text(result), "slept 1")
    assert anyio.current_time() - began >= seconds, "it was answered before anybody approved it"
    assert asked > 0, "it was not handed off"
    return f"answered once it was approved, after {seconds} s"


def explain(error):
    """In words; what a task group raises hides the reason inside."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


class Report:
    """One JSON line per check on stdout."""

    def __init__(self, only):
        self.only = only
        self.failed = False

    def line(self, check, ok, detail):
        self.failed |= ok is False
        print(json.dumps({"check": check, "ok": ok, "detail": detail}), flush=True)

    async def run(self, check, body, *args, limit=CHECK_LIMIT):
        if self.only and check not in self.only:
            return
        try:
            with anyio.fail_after(limit):
                self.line(check, True, await body(*args))
        except Unsupported as error:
            self.line(check, "unsupported", str(error))
        except Exception as error:
            self.line(check, False, explain(error))


async def closes_cleanly(closing_since):
    took = anyio.current_time() - closing_since
    # The SDK waits two seconds for the server to end by itself before it sends a signal.
    assert took < 1.9, f"the server had to be killed ({took:.1f} s)"

    async def gone():
        return not any(alive(pid) for pid in spawned)

    await until(gone, "the process is gone", 1)
    return "ended by itself"


def status_of_ping(url, session_id, version):
    """What the server says to a request of this session."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=5)
    headers = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": version,
        "mcp-session-id": session_id,
    }
    connection.request("POST", place.path, '{"jsonrpc":"2.0","id":"after","method":"ping"}', headers)
    status = connection.getresponse().status
    connection.close()
    return status


async def ends_session(closing_since, peer, url):
    """Over HTTP the process is not ours to end, but a legacy session is."""
    took = anyio.current_time() - closing_since
    assert took < 1.9, f"closing took {took:.1f} s"
    if peer.session_id is None:
        return "closed"
    status = await anyio.to_thread.run_sync(status_of_ping, url, peer.session_id, peer.version)
    assert status in (400, 404), f"the ended session answered {status}"
    return "the session has ended"


async def say_words(peer, count, said):
    """Goes on with the words until the session does not work any more."""
    failures = 0
    while said["answers"] < count:
        word = f"word-{os.getpid()}-{said['answers']}."
        try:
            with anyio.fail_after(30):
                answer = text(await peer.call("echo", {"text": word}))
        except Exception as error:
            said["again"] += 1
            failures += 1
            if failures == 5:
                raise ConnectionError(explain(error)) from error
            await anyio.sleep(0.2)
            continue
        if answer != word:
            said["wrong"] = f"got {answer}, wanted {word}"
            return
        said["answers"] += 1
        failures = 0
        await anyio.sleep(0.02)


async def words(connect, options):
    """Only before replicas that are killed: what fails is asked again, in the same session as long as that works, and
    every answer is the one to its own word."""
    said = {"answers": 0, "again": 0, "wrong": None}
    for _ in range(40):
        try:
            async with connect(options) as peer:
                await say_words(peer, options.words, said)
        except Exception as error:
            said["last"] = explain(error)
            await anyio.sleep(0.2)
        assert not said["wrong"], said["wrong"]
        if said["answers"] == options.words:
            return f"{options.words} answers, {said['again']} asked again"
    raise AssertionError(f"given up after {said['answers']} words: {said['last']}")


async def run(connect, options, report):
    """`connect(options)` is a context manager: entered, it gives the connected adapter."""
    if options.words:
        return await report.run("words", words, connect, options, limit=140)
    try:
        async with connect(options) as peer:
            who = f"{peer.era} {peer.version}, {peer.server_name}"
            report.line("connect", True, who)
            if peer.era == "modern":
                await report.run("discover", peer.discover)
            else:
                await report.run("ping", peer.ping)
            await report.run("progress_resets_timeout", progress_resets_timeout, peer)
            for check, body in PROFILES[options.profile].items():
                await report.run(check, body, peer)
            if options.held:
                await report.run("held", held, peer, options.held, limit=options.held + 30)
            closing_since = anyio.current_time()
    except Exception as error:
        report.line("connect", False, explain(error))
        return
    if options.url:
        await report.run("close", ends_session, closing_since, peer, options.url)
    else:
        await report.run("close", closes_cleanly, closing_since)


def main(connect):
    parser = ArgumentParser()
    parser.add_argument("--era", default="auto", choices=["legacy", "modern", "auto"])
    parser.add_argument("--profile", default="fixture", choices=sorted(PROFILES))
    parser.add_argument("--only", type=lambda names: names.split(","))
    parser.add_argument("--words", type=int)
    parser.add_argument("--held-ms", dest="held", type=lambda ms: int(ms) // 1000)
    argv = sys.argv[1:]
    if "--" not in argv or argv[-1] == "--":
        parser.error("the server's command or URL goes after `--`")
    end = argv.index("--")
    options = parser.parse_args(argv[:end])
    options.command, options.args = argv[end + 1], argv[end + 2 :]
    options.url = options.command if options.command.startswith("http") else None
    report = Report(options.only)
    anyio.run(run, connect, options, report)
    sys.exit(1 if report.failed else 0)
