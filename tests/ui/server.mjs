// A server on stdio for the dashboard's tests. What a tool does is in its name; a slow call ends when it is cancelled
// or when `release` is called.

import { createInterface } from 'node:readline';

const HOSTILE = '<img src=x onerror="document.title=\'owned\'">\u001b[31m\u202Eevil\u200b';
const TOOLS = ['quick', 'slow', 'release', 'delete_everything', HOSTILE];

const slow = new Map();
const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
const say = text => ({ content: [{ type: 'text', text }] });

function call({ id, params: { name, _meta } }) {
    if (name === 'slow') {
        slow.set(id, true);
        const token = _meta?.progressToken;
        if (token !== undefined) {
            send({ method: 'notifications/progress', params: { progressToken: token, progress: 1, message: 'compiling <b>part 1</b>' } });
        }
        return;
    }
    if (name === 'release') {
        for (const waiting of slow.keys()) send({ id: waiting, result: say('done') });
        slow.clear();
    }
    send({ id, result: say(name === 'delete_everything' ? 'deleted' : 'ok') });
}

const answers = {
    initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'fixture', version: '1' } }),
    'tools/list': () => ({ tools: TOOLS.map(name => ({ name, inputSchema: { type: 'object' } })) }),
    ping: () => ({}),
};

createInterface({ input: process.stdin }).on('line', line => {
    const message = JSON.parse(line);
    if (message.method === 'notifications/cancelled') slow.delete(message.params.requestId);
    if (message.id === undefined) return;
    if (message.method === 'tools/call') return call(message);
    const answer = answers[message.method];
    send(answer ? { id: message.id, result: answer() } : { id: message.id, error: { code: -32601, message: 'Method not found' } });
});
process.stderr.write('fixture: ready \u001b[1mnow\u001b[0m\n');

export { HOSTILE };
