// The page with a fixed example behind it: every view with something in it, also what is hard to make happen. The
// page and its headers are those that outlast sends.

import { createServer } from 'node:http';

const HOUR = 3_600_000;
export const HOSTILE = `<script>document.title='owned'</script><img src=x onerror="document.title='owned'">\u001b[2J\u202Egnp.exe\u2066\u200b`;

const call = (no, more) => ({
    id: `1234.${no}`, process: '1234', server: 'ci', method: 'tools/call', tool: 'run_build', client: 'cursor 1.2', principal: 'ana',
    state: 'running', attempts: 1, ticket: false, timeoutMs: 300_000, timeoutLeftMs: 210_000, maxMs: HOUR, message: null, ...more,
});

export function example(now) {
    const iso = ago => new Date(now - ago).toISOString();
    return {
        version: 1, now, more: 0, notes: [], rights: { sees: 'all', principal: null, decides: true, restarts: true },
        views: ['now', 'waiting', 'tasks', 'servers', 'tools'],
        calls: [
            call(1, { began: now - 1_930_000, lastSign: now - 4000, message: 'compiling 212 of 340' }),
            call(2, { began: now - 260_000, lastSign: now - 250_000, timeoutLeftMs: 20_000, attempts: 2, tool: 'deploy_preview', client: 'claude-code 2.0' }),
            call(3, { began: now - 41_000, lastSign: now - 41_000, state: 'held', server: 'shell', tool: 'run_command' }),
            call(4, { began: now - 9000, lastSign: now - 9000, state: 'queued', server: 'db', tool: 'export_table', ticket: true, client: 'opencode 1.0' }),
        ],
        ended: [
            call(90, { began: now - 70_000, tookMs: 812, outcome: 'answered', kind: null, tool: 'search' }),
            call(91, { began: now - 400_000, tookMs: 300_000, outcome: 'failed', kind: 'timeout', server: 'db', tool: 'export_table' }),
            call(92, { began: now - 500_000, tookMs: 60_100, outcome: 'cancelled', kind: null }),
        ],
        servers: [
            { name: 'ci', process: '1234', state: 'ready', era: 'legacy', version: 'ci-server 1.4', run: 1, restarts: 0, since: now - 7 * HOUR, inFlight: 2, error: null, stderr: ['listening', 'warn: cache is cold'] },
            { name: 'db', process: '1234', state: 'restarting', era: 'modern', version: 'db 0.9', run: 4, restarts: 3, since: now - 2000, inFlight: 1, error: 'the process ended with status 139 (SIGSEGV)', stderr: ['\u001b[31mpanic\u001b[0m: index out of bounds'] },
            { name: 'shell', process: '1234', state: 'ready', era: 'legacy', version: 'shell 2', run: 1, restarts: 0, since: now - HOUR, inFlight: 1, error: null, stderr: [] },
        ],
        holds: [
            hold(7, iso, now, { tool: 'run_command', server: 'shell', client: 'cursor 1.2', arguments: JSON.stringify({ command: 'rm -rf build/', cwd: '/home/ana/app', token: '***' }) }),
            { ...hold(5, iso, now, { tool: 'git_push', server: 'ci' }), open: false, grants: 'minutes', decision: { yes: true, by: 'ana' } },
        ],
        tasks: [
            task('3fa9c2d1', iso, { state: 'working', tool: 'run_tests', statusMessage: '184 of 960 tests' }),
            task('77be01aa', iso, { state: 'completed', tool: 'export_table', server: 'db' }),
            task('c0ffee12', iso, { state: 'failed', tool: 'deploy_preview' }),
        ],
        tools: [
            tool('ci', 'run_build', 412, 9, 5, 94_000, 281_000, 300_400, 300_000, { timeoutMs: 420_000, maxMs: 2 * HOUR, why: '412 calls, half within 94 s, 99 of 100 within 281 s; 5 were cut off at 300 s' }),
            tool('ci', 'search', 2310, 2, 0, 180, 2600, 5400, 30_000, { timeoutMs: 10_000, maxMs: 60_000, why: '2310 calls, 99 of 100 within 2.6 s, slowest 5.4 s' }),
            tool('db', 'export_table', 3, 1, 1, 60_000, 300_000, 300_000, 300_000, null),
        ],
    };
}

function hold(number, iso, now, more) {
    return {
        hold: number, server: 'shell', tool: 'x', arguments: '', client: '', principal: 'token:ana', asked: iso(41_000),
        until: iso(-79_000), open: true, waits: true, grants: null, decision: null, ...more,
    };
}

function task(ticket, iso, more) {
    return {
        ticket, state: 'working', server: 'ci', method: 'tools/call', tool: 'x', principal: 'token:ana', createdAt: iso(320_000),
        lastUpdatedAt: iso(12_000), owner: { pid: 1234, alive: true }, statusMessage: null, questions: [], ...more,
    };
}

function tool(server, name, calls, failures, cutOff, p50, p99, slowest, timeoutMs, proposed) {
    const buckets = [];
    for (let end = p50 / 16; end < slowest * 1.2; end *= 1.3) {
        const distance = Math.log(end / p50) / Math.log(p99 / p50 || 2);
        const count = Math.round(calls * 0.2 * Math.exp(-2.3 * distance * distance));
        if (count) buckets.push([Math.round(end), count]);
    }
    return { server, tool: name, calls, failures, cutOff, p50, p99, slowest, timeoutMs, proposed, buckets };
}

export function story(now) {
    const began = now - 1_930_000;
    const at = (ms, what, text) => ({ at: began + ms, what, text });
    return {
        call: call(1, { began, lastSign: now - 4000 }),
        steps: [
            at(0, 'began', '`run_build` of `ci` for cursor 1.2'), at(2, 'queued', 'waits for a turn'), at(1400, 'sent', 'attempt 1'),
            at(11_400, 'keep-alive', 'the client was told that it still runs'), at(250_000, 'progress', 'compiling 12 of 340'),
            at(610_000, 'retried', 'the server ended and the call may be repeated'), at(611_000, 'sent', 'attempt 2'),
            at(1_926_000, 'progress', 'compiling 212 of 340'),
        ],
        dropped: 0,
    };
}

/** Everything that somebody says is hostile. */
export function poisoned(now) {
    const long = 'A'.repeat(100_000);
    const poison = value => typeof value === 'string' && !/^\d{4}-|^[0-9a-f]{8}$/.test(value) ? HOSTILE + long : value;
    const keep = new Set(['state', 'id', 'process', 'ticket', 'asked', 'until', 'createdAt', 'lastUpdatedAt', 'views', 'rights', 'grants', 'outcome']);
    const walk = (value, name) => {
        if (keep.has(name)) return value;
        if (Array.isArray(value)) return value.map(item => walk(item, ''));
        if (value && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, walk(item, key)]));
        return poison(value);
    };
    return walk(example(now), '');
}

/** Serves the example; `made` gives the state. */
export async function serveExample(page, made) {
    const real = await fetch(page);
    const [html, headers] = [await real.text(), Object.fromEntries(real.headers)];
    delete headers['content-length'];
    delete headers.date;
    const streams = new Set();
    const server = createServer((request, response) => {
        const path = request.url.split('?')[0];
        if (path === '/outlast/') return response.writeHead(200, headers).end(html);
        if (path === '/outlast/api/feed') {
            response.writeHead(200, { 'content-type': 'text/event-stream' });
            response.write(`event: state\ndata: ${JSON.stringify(made(Date.now()))}\n\n`);
            streams.add(response);
            return response.on('close', () => streams.delete(response));
        }
        if (path.startsWith('/outlast/api/calls/')) return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(story(Date.now())));
        response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
    });
    await new Promise(done => server.listen(0, '127.0.0.1', done));
    const tell = (event, value) => streams.forEach(stream => stream.write(`event: ${event}\ndata: ${JSON.stringify(value)}\n\n`));
    return { page: `http://127.0.0.1:${server.address().port}/outlast/`, tell, stop: () => { streams.forEach(stream => stream.destroy()); server.close(); } };
}
