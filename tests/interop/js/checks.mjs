// What a JavaScript client of the interop tests does once it is connected: the named checks.
//
// Both TypeScript SDK lines run exactly these; each brings a small adapter (`ts1/client.mjs`,
// `ts2/client.mjs`) that says how its SDK calls a tool, subscribes, and so on. `README.md` lists
// the checks and the tools of the fixture servers.
//
// A detail is the same on every run of the same pair, so that the runner can compare the direct
// run with the one through outlast word for word.

import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';

const CHECK_LIMIT_MS = 15_000;
const COUNTER = 'test://counter';
const TAG = 'example.org/tag';
const MODERN_VERSION = 'io.modelcontextprotocol/protocolVersion';
const MODERN_LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const TOOLS = [
    'ask_elicit', 'ask_sampling', 'echo', 'hang_up', 'log', 'meta', 'progress',
    'slow', 'touch', 'wait_cancel', 'was_cancelled'
];

/** What the client answers when a server samples or elicits; the checks look for these words. */
export const ANSWERS = {
    sampling: prompt => ({ model: 'fixture', role: 'assistant', content: { type: 'text', text: `sampled: ${prompt}` } }),
    elicitation: schema => ({ action: 'accept', content: 'colour' in schema.properties ? { colour: 'teal' } : { name: 'teal' } })
};

/** A check whose feature one of the two SDKs lacks throws this. */
export class Unsupported extends Error {}

export const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

export function expect(condition, complaint) {
    if (!condition) throw new Error(complaint);
}

export function same(actual, wanted) {
    const [a, b] = [JSON.stringify(actual), JSON.stringify(wanted)];
    expect(a === b, `got ${a?.slice(0, 200)}, wanted ${b.slice(0, 200)}`);
}

export function bounded(promise, ms, what) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`${what}: nothing within ${ms} ms`)), ms);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export async function until(probe, what, ms = 4000) {
    const end = Date.now() + ms;
    while (!(await probe())) {
        expect(Date.now() < end, `${what}: not within ${ms} ms`);
        await sleep(20);
    }
}

export function text(result) {
    expect(!result.isError, `the tool answered with an error: ${JSON.stringify(result.content)}`);
    return result.content.map(part => part.text).join('\n');
}

function increasing(values) {
    for (let i = 1; i < values.length; i++) {
        expect(values[i] > values[i - 1], `progress went ${values[i - 1]} -> ${values[i]}`);
    }
}

function digest(value) {
    const sorted = (_, v) =>
        v && typeof v === 'object' && !Array.isArray(v) ? Object.fromEntries(Object.entries(v).sort()) : v;
    return createHash('sha256').update(JSON.stringify(value, sorted)).digest('hex').slice(0, 16);
}

function alive(pid) {
    try {
        process.kill(pid, 0);
        return true;
    } catch {
        return false;
    }
}

// The checks that are the same whatever the server; `names` maps to its tools.

async function callFails(peer) {
    try {
        const result = await peer.call('no_such_tool', {});
        expect(result.isError, 'an unknown tool was answered as if it existed');
        return 'answered with isError';
    } catch (error) {
        expect(typeof error.code === 'number', `not a protocol error: ${error.message}`);
        return `error ${error.code}`;
    }
}

async function progressArrives(peer, tool, args) {
    const seen = [];
    text(await peer.call(tool, args, { onprogress: p => seen.push(p.progress) }));
    increasing(seen);
    // Reports that travel together with the answer are lost in the SDK, so the last may be missing.
    same(seen.slice(0, 4), [1, 2, 3, 4]);
    return 'from 1 on, increasing';
}

/** Half the patience that the work needs, and a sign of life every 400 ms. */
async function progressResetsTimeout(peer, tool, args) {
    let seen = 0;
    const answer = await peer.call(tool, args, {
        timeout: 1500,
        resetTimeoutOnProgress: true,
        onprogress: () => (seen += 1)
    });
    expect(seen >= 5, `only ${seen} reports`);
    return text(answer);
}

async function echoesWhatItGot(peer, echo, message) {
    same(text(await peer.call('echo', echo.args(message))), echo.answer(message));
    return `${message.length} characters`;
}

/** Over HTTP the process is not ours to end, but a legacy session is. */
async function endsSession(peer, url) {
    const session = peer.session();
    await bounded(peer.close(), 1900, 'close');
    if (session === undefined) return 'closed';
    const answer = await fetch(url, {
        method: 'POST',
        headers: {
            'accept': 'application/json, text/event-stream',
            'content-type': 'application/json',
            'mcp-protocol-version': peer.version,
            'mcp-session-id': session
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 'after', method: 'ping' })
    });
    await answer.body?.cancel();
    expect(answer.status === 404 || answer.status === 400, `the ended session answered ${answer.status}`);
    return 'the session has ended';
}

async function closesCleanly(peer) {
    const pid = peer.pid();
    expect(pid, 'the transport does not know its process');
    const started = Date.now();
    await bounded(peer.close(), 6000, 'close');
    // The SDK waits two seconds for the server to end by itself before it sends a signal.
    expect(Date.now() - started < 1900, `the server had to be killed (${Date.now() - started} ms)`);
    await until(() => !alive(pid), 'the process is gone', 1000);
    return 'ended by itself';
}

const UNICODE = 'żółć 漢字 🦀 "quoted" \\ tab\t newline\n \u2028\u2029 \u0000 \ufeff end';
const LARGE = 'x0123456789abcde'.repeat(1 << 16);

const fixtureEcho = { args: message => ({ text: message }), answer: message => message };
const everythingEcho = { args: message => ({ message }), answer: message => `Echo: ${message}` };

/** The checks against one of our own fixture servers, in the order they are reported. */
const fixture = {
    lists: async peer => {
        const lists = await peer.lists();
        same(lists.tools.map(tool => tool.name).sort(), TOOLS);
        same(lists.resources.map(resource => resource.uri), [COUNTER]);
        same(lists.prompts.map(prompt => prompt.name), ['greet']);
        return digest(lists);
    },
    echo: peer => echoesWhatItGot(peer, fixtureEcho, 'hello'),
    request_meta: async peer => {
        const seen = JSON.parse(text(await peer.call('meta', {}, { meta: { [TAG]: 't-1' } })));
        same(seen[TAG], 't-1');
        if (peer.era === 'modern') same(seen[MODERN_VERSION], peer.version);
        return digest(seen);
    },
    progress: peer => progressArrives(peer, 'progress', { steps: 12, ms: 40 }),
    cancel: async peer => {
        const count = async () => Number(text(await peer.call('was_cancelled', {})));
        const before = await count();
        const abort = new AbortController();
        const call = peer.call('wait_cancel', {}, { signal: abort.signal }).then(
            () => 'answered',
            () => 'rejected'
        );
        await sleep(200);
        abort.abort('interop');
        same(await call, 'rejected');
        await until(async () => (await count()) === before + 1, 'the server noticed the cancel');
        return 'the server noticed';
    },
    sampling: async peer => {
        same(text(await peer.call('ask_sampling', { prompt: 'p-17' })), 'sampled: p-17');
        return 'sampled: p-17';
    },
    elicitation: async peer => {
        // A modern server cannot send requests: it answers `input_required` with a state that has
        // to come back unchanged.
        const answer = text(await peer.call('ask_elicit', {}));
        expect(answer.startsWith('accept teal'), answer);
        if (peer.era === 'modern') expect(answer.endsWith('state-42'), answer);
        return answer;
    },
    read_resource: async peer => {
        const { contents } = await peer.readResource(COUNTER);
        same(contents[0].uri, COUNTER);
        expect(/^\d+$/.test(contents[0].text), contents[0].text);
        return contents[0].mimeType;
    },
    subscription: async peer => {
        const updates = [];
        peer.onUpdated(uri => updates.push(uri));
        const stop = await peer.watch(COUNTER);
        await peer.call('touch', {});
        await until(() => updates.includes(COUNTER), 'an update of the resource');
        await stop();
        return peer.era === 'modern' ? 'subscriptions/listen' : 'resources/subscribe';
    },
    // Over HTTP the stream breaks off in mid-call, and the client has to come back for the answer.
    resume: async peer => text(await peer.call('hang_up', {})),
    prompt: async peer => {
        const { messages } = await peer.getPrompt('greet', { name: 'Ada' });
        same(messages[0].content.text, 'Hello, Ada!');
        return 'Hello, Ada!';
    },
    completion: async peer => {
        const { completion } = await peer.completePrompt('greet', { name: 'name', value: 'A' });
        same(completion.values, ['Ada', 'Alan']);
        return completion.values.join(' ');
    },
    logging: async peer => {
        const seen = [];
        peer.onLog(entry => seen.push(entry));
        const options = peer.era === 'modern' ? { meta: { [MODERN_LOG_LEVEL]: 'warning' } } : {};
        if (peer.era === 'modern') await peer.call('log', { level: 'error', text: 'not asked for' });
        else await peer.setLevel('warning');
        await peer.call('log', { level: 'info', text: 'quiet' }, options);
        await peer.call('log', { level: 'error', text: 'loud' }, options);
        await until(() => seen.length > 0, 'a log message');
        same(seen.map(entry => [entry.level, entry.data]), [['error', 'loud']]);
        return 'error: loud';
    },
    unknown_tool: callFails,
    concurrent: async peer => {
        // The first asked is the last to be answered.
        const waits = Array.from({ length: 20 }, (_, i) => 240 - 12 * i);
        const answers = await Promise.all(waits.map(async ms => text(await peer.call('slow', { ms }))));
        same(answers, waits.map(ms => `slept ${ms}`));
        return `${answers.length} answers`;
    },
    unicode: peer => echoesWhatItGot(peer, fixtureEcho, UNICODE),
    large: peer => echoesWhatItGot(peer, fixtureEcho, LARGE)
};

/** The same against `@modelcontextprotocol/server-everything`, whose tools have other names. */
const everything = {
    lists: async peer => {
        const lists = await peer.lists();
        for (const name of ['echo', 'get-env', 'trigger-sampling-request', 'trigger-elicitation-request']) {
            expect(lists.tools.some(tool => tool.name === name), `no tool ${name}`);
        }
        expect(lists.prompts.some(prompt => prompt.name === 'args-prompt'), 'no prompt args-prompt');
        expect(lists.resources.length > 0, 'no resources');
        return digest(lists);
    },
    echo: peer => echoesWhatItGot(peer, everythingEcho, 'hello'),
    // The server sees the same environment with and without outlast.
    environment: async peer => digest(JSON.parse(text(await peer.call('get-env', {})))),
    progress: peer => progressArrives(peer, 'trigger-long-running-operation', { duration: 1, steps: 10 }),
    cancel: async peer => {
        // This server tells nobody that it was cancelled; what is left is that the client is freed.
        const abort = new AbortController();
        const call = peer.call('trigger-long-running-operation', { duration: 1.5, steps: 3 }, { signal: abort.signal });
        const outcome = call.then(() => 'answered', () => 'rejected');
        await sleep(200);
        abort.abort('interop');
        same(await bounded(outcome, 1000, 'the cancelled call'), 'rejected');
        return 'the client was freed';
    },
    sampling: async peer => {
        const answer = text(await peer.call('trigger-sampling-request', { prompt: 'p-17', maxTokens: 10 }));
        expect(/sampled: .*p-17/.test(answer), answer);
        return digest(answer);
    },
    elicitation: async peer => {
        const answer = text(await peer.call('trigger-elicitation-request', {}));
        expect(answer.includes('- Name: teal'), answer);
        return digest(answer);
    },
    read_resource: async peer => {
        const { contents } = await peer.readResource('demo://resource/dynamic/text/1');
        expect(contents[0].text.includes('Resource 1'), contents[0].text);
        return contents[0].mimeType;
    },
    subscription: async peer => {
        const uri = 'demo://resource/dynamic/text/1';
        const updates = [];
        peer.onUpdated(updated => updates.push(updated));
        const stop = await peer.watch(uri);
        await peer.call('toggle-subscriber-updates', {});
        await until(() => updates.includes(uri), 'an update of the resource');
        await peer.call('toggle-subscriber-updates', {});
        await stop();
        return 'resources/subscribe';
    },
    prompt: async peer => {
        const { messages } = await peer.getPrompt('args-prompt', { city: 'Oslo' });
        same(messages[0].content.text, "What's weather in Oslo?");
        return messages[0].content.text;
    },
    completion: async peer => {
        const argument = { name: 'department', value: 'S' };
        const { completion } = await peer.completePrompt('completable-prompt', argument);
        same(completion.values, ['Sales', 'Support']);
        return completion.values.join(' ');
    },
    logging: async peer => {
        const seen = [];
        peer.onLog(entry => seen.push(entry));
        await peer.setLevel('debug');
        await peer.call('toggle-simulated-logging', {});
        await until(() => seen.some(entry => /level.message/.test(entry.data)), 'a log message');
        await peer.call('toggle-simulated-logging', {});
        return 'a message of a random level';
    },
    unknown_tool: callFails,
    concurrent: async peer => {
        const words = Array.from({ length: 20 }, (_, i) => `word-${i}`);
        const answers = await Promise.all(
            words.map(async word => text(await peer.call('echo', everythingEcho.args(word))))
        );
        same(answers, words.map(everythingEcho.answer));
        return `${answers.length} answers`;
    },
    unicode: peer => echoesWhatItGot(peer, everythingEcho, UNICODE),
    large: peer => echoesWhatItGot(peer, everythingEcho, LARGE)
};

const profiles = { fixture, everything };

/** Runs beside all others: it takes three seconds, and its call shares the connection with theirs. */
const patience = {
    fixture: peer => progressResetsTimeout(peer, 'progress', { steps: 8, ms: 400 }),
    everything: peer => progressResetsTimeout(peer, 'trigger-long-running-operation', { duration: 3, steps: 8 })
};

/** Only through outlast: nobody but the proxy says that the call lives. */
async function keepalive(peer, silenceMs) {
    const seen = [];
    const answer = await peer.call('slow', { ms: silenceMs }, {
        timeout: 2000,
        resetTimeoutOnProgress: true,
        onprogress: p => seen.push(p.progress)
    });
    same(text(answer), `slept ${silenceMs}`);
    increasing(seen);
    return `${seen.length} signs of life in ${silenceMs} ms`;
}

/** Only through outlast: a call that waits for a person's yes, of a client with two seconds of patience. */
async function held(peer, heldMs) {
    const began = Date.now();
    const heard = [];
    const answer = await peer.call('slow', { ms: 1 }, {
        timeout: 2000,
        resetTimeoutOnProgress: true,
        onprogress: p => heard.push(p.message ?? '')
    });
    same(text(answer), 'slept 1');
    expect(Date.now() - began >= heldMs, 'it was answered before anybody approved it');
    expect(heard.some(words => words.startsWith('waiting for approval of `slow`')), `heard: ${heard[0]}`);
    return `answered once it was approved, after ${heldMs / 1000} s`;
}

/** Only through outlast: the server is killed in mid-call, and the next call finds a new one. */
async function crash(peer, outlast) {
    const running = peer.call('trigger-long-running-operation', { duration: 20, steps: 5 });
    const lost = running.then(() => 'answered', error => error.message);
    await peer.call('echo', everythingEcho.args('before'));
    // Not outlast's guardian, which carries the server's words in its own command line.
    const isServer = ({ command }) => command.startsWith('node') && command.includes('server-everything');
    const victims = descendants(outlast).filter(isServer);
    expect(victims.length > 0, 'no server process was found');
    for (const { pid } of victims) process.kill(pid, 'SIGKILL');
    expect((await lost).includes('went away'), `the lost call said: ${await lost}`);
    await echoesWhatItGot(peer, everythingEcho, 'after');
    return 'replaced in mid-call';
}

/** Only through outlast: the server forgets its sessions, and the next call works all the same. */
async function forgotten(peer, server) {
    await echoesWhatItGot(peer, fixtureEcho, 'before');
    const answer = await fetch(new URL('/forget', server), { method: 'POST' });
    same(answer.status, 204);
    await echoesWhatItGot(peer, fixtureEcho, 'after');
    const updates = [];
    peer.onUpdated(uri => updates.push(uri));
    const stop = await peer.watch(COUNTER);
    await peer.call('touch', {});
    await until(() => updates.includes(COUNTER), 'an update of the resource');
    await stop();
    return 'a new session, unnoticed';
}

/**
 * Only before replicas that are killed: what fails is asked again, in the same session as long as that works, and every
 * answer is the one to its own word.
 */
async function words(connect, options) {
    let peer;
    let again = 0;
    let tries = 0;
    for (let number = 0; number < options.words; ) {
        const word = `word-${process.pid}-${number}.`;
        let said;
        try {
            peer ??= await bounded(connect(options), CHECK_LIMIT_MS, 'connect');
            said = text(await bounded(peer.call('echo', fixtureEcho.args(word)), 30_000, 'a call'));
        } catch (error) {
            tries += 1;
            again += 1;
            expect(tries < 40, `given up after ${number} words: ${error.message}`);
            if (tries % 5 === 0) peer = undefined;
            await sleep(200);
            continue;
        }
        same(said, word);
        number += 1;
        tries = 0;
        await sleep(20);
    }
    return `${options.words} answers, ${again} asked again`;
}

/** Every process below one, from /proc. */
function descendants(root) {
    const all = readdirSync('/proc').filter(name => /^\d+$/.test(name)).flatMap(name => {
        try {
            const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
            const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
            return [{ pid: Number(name), parent, command: readFileSync(`/proc/${name}/cmdline`, 'utf8') }];
        } catch {
            return [];
        }
    });
    const below = pid => all.filter(({ parent }) => parent === pid).flatMap(found => [found, ...below(found.pid)]);
    return below(root);
}

function parse(argv) {
    const options = { era: 'auto', profile: 'fixture', only: undefined, silenceMs: 60_000, heldMs: 0 };
    const end = argv.indexOf('--');
    expect(end >= 0 && end + 1 < argv.length, 'usage: client [--era E] [--profile P] [--only A,B] [--silence-ms N] [--held-ms N] [--words N] [--pid N] [--server URL] -- COMMAND...|URL');
    for (let i = 0; i < end; i += 2) {
        const value = argv[i + 1];
        if (argv[i] === '--era') options.era = value;
        else if (argv[i] === '--profile') options.profile = value;
        else if (argv[i] === '--only') options.only = value.split(',');
        else if (argv[i] === '--silence-ms') options.silenceMs = Number(value);
        else if (argv[i] === '--held-ms') options.heldMs = Number(value);
        else if (argv[i] === '--words') options.words = Number(value);
        else if (argv[i] === '--pid') options.pid = Number(value);
        else if (argv[i] === '--server') options.server = value;
        else throw new Error(`unknown option ${argv[i]}`);
    }
    expect(profiles[options.profile], `unknown profile ${options.profile}`);
    const [command, ...args] = argv.slice(end + 1);
    return command.startsWith('http') ? { ...options, url: command } : { ...options, command, args };
}

/**
 * Runs the checks against the server that the command line names and sets the exit code.
 *
 * `connect(options)` starts the server or connects to its URL through the SDK, and gives the adapter back.
 */
export async function main(connect) {
    const options = parse(process.argv.slice(2));
    let failed = false;
    const report = (check, ok, detail) => {
        failed ||= ok === false;
        process.stdout.write(`${JSON.stringify({ check, ok, detail })}\n`);
    };
    const run = async (check, body, limit = CHECK_LIMIT_MS) => {
        if (options.only && !options.only.includes(check)) return;
        try {
            report(check, true, await bounded(body(), limit, check));
        } catch (error) {
            report(check, error instanceof Unsupported ? 'unsupported' : false, error.message);
        }
    };

    if (options.words) {
        await run('words', () => words(connect, options), 140_000);
        process.exit(failed ? 1 : 0);
    }
    let peer;
    try {
        peer = await bounded(connect(options), CHECK_LIMIT_MS, 'connect');
        report('connect', true, `${peer.era} ${peer.version}, ${peer.serverName()}`);
    } catch (error) {
        report('connect', false, error.message);
        process.exit(1);
    }

    // First of all, because a modern client may have been told all it needs by another process:
    // only an answer proves that this server has started, and the next check is short of patience.
    if (peer.era === 'modern') await run('discover', () => peer.discover());
    else await run('ping', () => peer.ping());
    const beside = run('progress_resets_timeout', () => patience[options.profile](peer));
    for (const [check, body] of Object.entries(profiles[options.profile])) await run(check, () => body(peer));
    if (options.only?.includes('keepalive')) {
        await run('keepalive', () => keepalive(peer, options.silenceMs), options.silenceMs + 20_000);
    }
    if (options.only?.includes('held')) {
        await run('held', () => held(peer, options.heldMs), options.heldMs + 30_000);
    }
    if (options.only?.includes('forgotten')) await run('forgotten', () => forgotten(peer, options.server));
    if (options.only?.includes('crash')) await run('crash', () => crash(peer, options.pid ?? peer.pid()));
    await beside;
    await run('close', () => (options.url ? endsSession(peer, options.url) : closesCleanly(peer)));
    if (options.only) await bounded(peer.close(), 6000, 'close').catch(() => {});
    process.exit(failed ? 1 : 0);
}
