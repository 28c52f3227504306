// Many clients at once before many servers at one address: some on an official SDK, some that write HTTP themselves.
// Both TypeScript SDK lines share it.
//
//   node crowd.mjs SERVERS SDK RAW CALLS FIRST -- URL
//
// SERVERS is a JSON array of `{name, argument}`; every client goes round all of them, and each call carries a word that
// no other call has. An answer has to be the answer to that word; a call whose server was killed may say so, and is
// made again.

const [servers, sdk, raw, calls, first] = process.argv.slice(2, 7).map(word => JSON.parse(word));
const url = process.argv.at(-1);
export const INFO = { name: 'crowd', version: '1.0.0' };
const LISTED_MS = 40_000;
const TRIES = 40;

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

async function byHand() {
    let session;
    let id = 0;
    const post = async message => {
        const headers = {
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            'mcp-protocol-version': '2025-11-25',
            ...(session && { 'mcp-session-id': session })
        };
        const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
        session ??= response.headers.get('mcp-session-id');
        const text = await response.text();
        if (message.id === undefined) return undefined;
        const lines = text.startsWith('{') ? [text] : text.split('\n').flatMap(line => line.match(/^data: (.*)/)?.[1] ?? []);
        const answer = lines.map(line => line && JSON.parse(line)).find(found => found.id === message.id);
        if (!answer) throw new Error(`${response.status} without an answer to ${message.id}: ${text.slice(0, 200)}`);
        if (answer.error) throw Object.assign(new Error(answer.error.message), answer.error);
        return answer.result;
    };
    const request = (method, params) => post({ id: ++id, method, params });
    await request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: INFO });
    await post({ method: 'notifications/initialized' });
    return {
        names: async () => (await request('tools/list', {})).tools.map(tool => tool.name),
        call: (name, args) => request('tools/call', { name, arguments: args }),
        close: () => fetch(url, { method: 'DELETE', headers: { 'mcp-session-id': session } })
    };
}

/** A list waits for no server for ever, so a slow one comes into it later. */
async function everythingListed(client) {
    const end = Date.now() + LISTED_MS;
    for (;;) {
        const names = new Set(await client.names());
        const missing = servers.filter(({ name }) => !names.has(`${name}__echo`));
        if (missing.length === 0) return;
        if (Date.now() > end) throw new Error(`not listed: ${missing.map(({ name }) => name).join(' ')}`);
        await sleep(500);
    }
}

let answered = 0;
let repeated = 0;

async function callOnce(client, { name, argument }, word) {
    for (let tries = 1; ; tries++) {
        try {
            const result = await client.call(`${name}__echo`, { [argument]: word });
            if (!JSON.stringify(result).includes(word) || result.isError) {
                throw new Error(`${word} was answered with ${JSON.stringify(result)}`);
            }
            answered++;
            return;
        } catch (error) {
            const kind = error.data?.outlast?.kind;
            if (!['server-gone', 'server-failed'].includes(kind) || tries === TRIES) throw error;
            repeated++;
            await sleep(300);
        }
    }
}

async function visit(number, open) {
    const client = await open();
    await everythingListed(client);
    for (let call = 0; call < calls; call++) {
        await callOnce(client, servers[(number + call) % servers.length], `word-${number}-${call}.`);
    }
    await client.close();
}

/** Lets all clients in; `withSdk(url)` opens one that is on the SDK. */
export async function crowd(withSdk) {
    const open = place => (place < sdk ? () => withSdk(url) : byHand);
    const visits = Array.from({ length: sdk + raw }, (_, place) => visit(first + place, open(place)));
    const ends = await Promise.allSettled(visits);
    const failures = ends.filter(end => end.status === 'rejected').map(end => end.reason.message);
    const detail = failures[0] ?? `${answered} answers, ${repeated} calls made again`;
    console.log(JSON.stringify({ check: 'calls', ok: failures.length === 0, detail }));
    process.exit(failures.length === 0 ? 0 : 1);
}
